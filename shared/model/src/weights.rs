//! Tensors of a checkpoint: safetensors files, bytes in memory, or a GGUF file.

mod error;
pub(crate) mod file;
pub(crate) mod shards;
mod stored;

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use candle_core::quantized::GgmlDType;
use sha2::{Digest, Sha256};

pub use self::error::WeightsError;
use self::{file::TensorFile, stored::StoredTensor};
use crate::gguf::{
    encode,
    tensor_names::{Layout, NamedTensor},
};
use crate::linear::{GgmlFormat, Linear, Order, WeightFormat};

/// Tensors by name, read when asked for.
pub struct Weights {
    files: Vec<TensorFile>,
    /// Of a GGUF file, what its tensors are in a Hugging Face checkpoint, by the name they have there.
    names: Option<BTreeMap<String, NamedTensor>>,
}

impl Weights {
    /// Maps the weights of the checkpoint in `folder` into memory: `model.safetensors`, or the
    /// shards that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// If there are none, or a file is truncated; the message names the file.
    pub fn open(folder: &Path) -> Result<Self, WeightsError> {
        let open = |path: &Path| {
            let bytes = file::mapped(path).map_err(|source| WeightsError::io(path, source))?;
            let malformed = |error| WeightsError::malformed(&path.display().to_string(), &error);
            TensorFile::safetensors(bytes).map_err(malformed)
        };
        let files = shards::files(folder)?.into_iter().map(|path| open(&path));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            names: None,
        })
    }

    /// Takes the bytes of a safetensors file, without a copy.
    ///
    /// # Errors
    /// If they are truncated.
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, WeightsError> {
        let file = TensorFile::safetensors(Box::new(bytes.into()));
        let file = file.map_err(|error| WeightsError::malformed("the file in memory", &error))?;
        Ok(Self {
            files: vec![file],
            names: None,
        })
    }

    /// Whether there is a tensor of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.stored(name).is_some()
    }

    /// Checks that there is a tensor `name` of the shape `expected`.
    ///
    /// # Errors
    /// If it is missing or has another shape.
    pub(crate) fn check(&self, name: &str, expected: &[usize]) -> Result<(), WeightsError> {
        self.view(name, expected).map(|_| ())
    }

    /// Takes the tensors of a GGUF file, known under the names in `tensors`.
    pub(crate) fn from_gguf(file: TensorFile, tensors: Vec<NamedTensor>) -> Self {
        let names = tensors
            .into_iter()
            .map(|tensor| (tensor.hugging_face.clone(), tensor))
            .collect();
        Self {
            files: vec![file],
            names: Some(names),
        }
    }

    /// The tensor `name` in f32, row by row.
    ///
    /// # Errors
    /// If it is missing, has another shape than `expected`, or holds numbers of another kind.
    pub fn tensor(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, WeightsError> {
        let mut values = Vec::new();
        self.append(name, expected, &mut values)?;
        Ok(values)
    }

    /// Appends the tensor `name` in f32, row by row, to `values`: tensors that are stacked need no
    /// copy.
    ///
    /// # Errors
    /// As [`Weights::tensor`].
    pub fn append(
        &self,
        name: &str,
        expected: &[usize],
        values: &mut Vec<f32>,
    ) -> Result<(), WeightsError> {
        let stored = self.view(name, expected)?;
        let unreadable = || WeightsError::Dtype {
            name: self.described(name),
            found: stored.info.format_name.clone(),
            gguf: self.names.is_some(),
        };
        let format = stored.info.format.ok_or_else(unreadable)?;
        let first = values.len();
        values.reserve_exact(expected.iter().product());
        stored.decode(format, values).map_err(|_| unreadable())?;
        if values[first..]
            .iter()
            .fold(false, |any, value| any | !value.is_finite())
        {
            let name = self.described(name);
            return Err(WeightsError::NotFinite { name });
        }
        Ok(())
    }

    /// Whether they are a GGUF file's.
    pub(crate) fn is_gguf(&self) -> bool {
        self.names.is_some()
    }

    /// Formats of all matrices that a GGUF file holds for the model; none of other files, which are
    /// not quantised.
    pub(crate) fn matrix_formats(&self) -> Vec<GgmlDType> {
        let names = self.names.iter().flat_map(BTreeMap::keys);
        let infos = names.filter_map(|name| Some(self.stored(name)?.info));
        let matrices = infos.filter(|info| info.shape.len() == 2);
        matrices.filter_map(|info| info.format).collect()
    }

    /// Matrices of one input as one, `(outputs, inputs)` each, in `format`, its outputs in `order`.
    ///
    /// Blocks that are in that format already are taken as they are; of others no more than this one
    /// matrix is in f32 at a time.
    ///
    /// # Errors
    /// As [`Weights::tensor`].
    pub(crate) fn linear(
        &self,
        parts: &[(String, [usize; 2])],
        bias: Option<Vec<f32>>,
        format: WeightFormat,
        order: Order,
    ) -> Result<Linear, WeightsError> {
        let inputs = parts.first().map_or(0, |(_, [_, inputs])| *inputs);
        let outputs: usize = parts.iter().map(|(_, [outputs, _])| outputs).sum();
        if let Some((ggml, dtype)) = blocks_of(format, inputs)
            && let Some(bytes) = self.stacked_blocks(parts, dtype)?
            && let Some(linear) =
                Linear::from_ggml(order, ggml, &bytes, bias.clone(), outputs, inputs)
        {
            return Ok(linear);
        }
        let mut values = Vec::with_capacity(outputs * inputs);
        for (name, shape) in parts {
            self.append(name, shape, &mut values)?;
        }
        Ok(Linear::in_order(order, &values, bias, inputs, format))
    }

    /// Matrices as one, in blocks of the format `wanted`: as they are stored, or quantised where a matrix
    /// beside them is stored so; `None` if none is.
    fn stacked_blocks(
        &self,
        parts: &[(String, [usize; 2])],
        wanted: GgmlDType,
    ) -> Result<Option<Vec<u8>>, WeightsError> {
        let is_stored = |(name, _): &(String, [usize; 2])| {
            let stored = self.stored(name);
            stored.is_some_and(|stored| stored.info.format == Some(wanted))
        };
        if !parts.iter().any(is_stored) {
            return Ok(None);
        }
        let mut stacked = Vec::new();
        for (name, shape) in parts {
            if let Some(bytes) = self.blocks(name, shape, wanted)? {
                stacked.extend(bytes);
                continue;
            }
            let values = self.tensor(name, shape)?;
            let Ok(bytes) = encode(&values, wanted) else {
                return Ok(None);
            };
            stacked.extend(bytes);
        }
        Ok(Some(stacked))
    }

    /// The matrix `name` as it is stored, in blocks of the format `wanted`, rows in their order;
    /// `None` if it is stored otherwise.
    ///
    /// # Errors
    /// If it is missing, has another shape than `expected`, or holds numbers that are not finite.
    pub(crate) fn blocks(
        &self,
        name: &str,
        expected: &[usize],
        wanted: GgmlDType,
    ) -> Result<Option<Vec<u8>>, WeightsError> {
        let stored = self.view(name, expected)?;
        if stored.info.format != Some(wanted) || stored.layout == Layout::PlusOne {
            return Ok(None);
        }
        let bytes = stored.rows(wanted).into_owned();
        let finite = match stored::scales_are_finite(wanted, &bytes) {
            Some(finite) => finite,
            // What is wrong with it is found in its numbers.
            None => self.tensor(name, expected).map(|_| true)?,
        };
        if finite {
            Ok(Some(bytes))
        } else {
            let name = self.described(name);
            Err(WeightsError::NotFinite { name })
        }
    }

    /// Feeds names, types, shapes and contents to `hash`, in the order of the names: the same
    /// weights give the same digest however they are sharded.
    pub(crate) fn digest(&self, hash: &mut Sha256) {
        let mut tensors: Vec<_> = self.files.iter().flat_map(TensorFile::iter).collect();
        tensors.sort_by_key(|(name, ..)| *name);
        for (name, info, bytes) in tensors {
            hash.update(format!("{name} {} {:?}\n", info.format_name, info.shape));
            hash.update(bytes);
        }
    }

    /// The tensor as it is stored.
    fn stored(&self, name: &str) -> Option<StoredTensor<'_>> {
        let (name, layout) = match &self.names {
            Some(names) => names
                .get(name)
                .map(|named| (named.gguf.as_str(), named.layout))?,
            None => (name, Layout::Same),
        };
        let (info, bytes) = self.files.iter().find_map(|file| file.get(name))?;
        Some(StoredTensor {
            info,
            layout,
            bytes,
        })
    }

    /// The tensor as it is stored, of the shape `expected`.
    fn view(&self, name: &str, expected: &[usize]) -> Result<StoredTensor<'_>, WeightsError> {
        let stored = self
            .stored(name)
            .ok_or_else(|| WeightsError::Missing(self.described(name)))?;
        if stored.info.shape != expected {
            return Err(WeightsError::Shape {
                name: self.described(name),
                expected: expected.to_vec(),
                found: stored.info.shape.clone(),
            });
        }
        Ok(stored)
    }

    /// A tensor's name as it stands in the file.
    fn described(&self, name: &str) -> String {
        let named = self.names.as_ref().and_then(|names| names.get(name));
        named.map_or(name, |named| &named.gguf).to_owned()
    }
}

/// Blocks that a matrix is held in, if its rows are whole ones.
fn blocks_of(format: WeightFormat, inputs: usize) -> Option<(GgmlFormat, GgmlDType)> {
    let q4_k = (GgmlFormat::Q4_K, GgmlDType::Q4K);
    let q8_0 = (GgmlFormat::Q8_0, GgmlDType::Q8_0);
    let formats: &[(GgmlFormat, GgmlDType)] = match format {
        WeightFormat::F32 => &[],
        WeightFormat::Q8_0 => &[q8_0],
        WeightFormat::Q4_K => &[q4_k, q8_0],
    };
    let fits = |(format, _): &&(GgmlFormat, GgmlDType)| inputs.is_multiple_of(format.block());
    formats.iter().find(fits).copied()
}

#[cfg(test)]
mod tests;
