//! Tensors of a checkpoint: safetensors files, bytes in memory, or GGUF files.

pub(crate) mod digest;
mod error;
pub(crate) mod file;
pub(crate) mod ggml_type;
mod matrices;
mod places;
mod rows;
pub(crate) mod shards;
mod stored;
mod table_format;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use self::places::rotary_place;
pub(crate) use self::places::{NamedTensor, RowRange, TensorLayout, rotary_source};
pub(crate) use self::stored::encode;
pub use self::{error::WeightsError, file::UnreadableFile};
use self::{file::TensorFile, stored::StoredTensor};
use crate::{mistaken, progress::LoadProgress, weights_cache::PackedStore};

/// Tensors by name, read when asked for. Copies are of the same files.
#[derive(Clone)]
pub struct Weights {
    files: Arc<[TensorFile]>,
    /// Of GGUF files, what their tensors are in a Hugging Face checkpoint, by the name they have there.
    names: Option<Arc<BTreeMap<String, NamedTensor>>>,
    /// Tensors that are rows of others, by their names.
    row_ranges: Arc<BTreeMap<String, RowRange>>,
    /// Of safetensors files, the tensors that stand there otherwise than they are given, by their names.
    layouts: Arc<BTreeMap<String, TensorLayout>>,
    /// How many of their bytes were read.
    pub(crate) progress: Arc<LoadProgress>,
    /// Where matrices are that were packed before, or are kept.
    packed: Option<Arc<PackedStore>>,
}

impl Weights {
    /// Maps the weights of the checkpoint in `folder` into memory: `model.safetensors`, or the
    /// shards that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// If there are none, or a file is truncated; the message names the file.
    pub fn open(folder: &Path) -> Result<Self, WeightsError> {
        let open = |path: &Path| {
            let bytes = file::mapped(path)?;
            let file = path.display().to_string();
            if let Some(what) = mistaken::instead(&bytes) {
                return Err(WeightsError::malformed(&file, &what));
            }
            TensorFile::safetensors(bytes).map_err(|error| WeightsError::malformed(&file, &error))
        };
        let files = shards::files(folder)?.into_iter().map(|path| open(&path));
        Ok(Self::of(files.collect::<Result<_, _>>()?, None))
    }

    fn of(files: Vec<TensorFile>, names: Option<BTreeMap<String, NamedTensor>>) -> Self {
        Self {
            files: files.into(),
            names: names.map(Arc::new),
            row_ranges: Arc::default(),
            layouts: Arc::default(),
            progress: Arc::default(),
            packed: None,
        }
    }

    /// Takes the bytes of a safetensors file, without a copy.
    ///
    /// # Errors
    /// If they are truncated.
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, WeightsError> {
        let file = TensorFile::safetensors(Box::new(bytes.into()));
        let file = file.map_err(|error| WeightsError::malformed("the file in memory", &error))?;
        Ok(Self::from_file(file))
    }

    /// Takes the tensors of one file, under the names they have there.
    pub(crate) fn from_file(file: TensorFile) -> Self {
        Self::of(vec![file], None)
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

    /// Takes the tensors of a model's GGUF files, known under the names in `tensors`.
    pub(crate) fn from_gguf(files: Vec<TensorFile>, tensors: Vec<NamedTensor>) -> Self {
        let names = tensors
            .into_iter()
            .map(|tensor| (tensor.hugging_face.clone(), tensor))
            .collect();
        Self::of(files, Some(names))
    }

    /// These tensors, of which those that `row_ranges` names are rows of others unless they are there by themselves.
    pub(crate) fn with_row_ranges(self, row_ranges: BTreeMap<String, RowRange>) -> Self {
        let row_ranges = Arc::new(row_ranges);
        Self { row_ranges, ..self }
    }

    /// These tensors, of which those that `layouts` names stand so in safetensors files.
    pub(crate) fn with_layouts(self, layouts: BTreeMap<String, TensorLayout>) -> Self {
        let layouts = Arc::new(layouts);
        Self { layouts, ..self }
    }

    /// These tensors, with matrices taken from `store`, or kept there.
    pub(crate) fn packed_in(&self, store: &Arc<PackedStore>) -> Self {
        Self {
            packed: Some(Arc::clone(store)),
            ..self.clone()
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
        self.progress.read(stored.bytes.len() as u64);
        Ok(())
    }

    /// Formats of all tensors by their names, with the bytes that each takes as it is stored.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        let tensors = self.files.iter().flat_map(TensorFile::iter);
        tensors.map(|(_, info, bytes)| (info.format_name.as_str(), bytes.len()))
    }

    /// Returns the names, as they stand in the files, of the tensors that are none of `names`.
    pub(crate) fn beside(&self, names: impl Iterator<Item = String>) -> Vec<&str> {
        let names: BTreeSet<String> = names.map(|name| self.described(&name)).collect();
        let tensors = self.files.iter().flat_map(TensorFile::iter);
        let mut others: Vec<&str> = tensors
            .map(|(name, ..)| name)
            .filter(|name| !names.contains(*name))
            .collect();
        others.sort_unstable();
        others
    }

    /// Bytes of all tensors.
    pub(crate) fn bytes(&self) -> u64 {
        let tensors = self.files.iter().flat_map(TensorFile::iter);
        tensors.map(|(_, _, bytes)| bytes.len() as u64).sum()
    }

    /// Whether they are a GGUF file's.
    pub(crate) fn is_gguf(&self) -> bool {
        self.names.is_some()
    }

    /// The tensor as it is stored, if it is there by itself.
    fn stored(&self, name: &str) -> Option<StoredTensor<'_>> {
        let (name, layout) = if let Some(names) = &self.names {
            let named = names.get(name)?;
            (named.gguf.as_str(), named.layout)
        } else {
            let layout = self.layouts.get(name).copied();
            (name, layout.unwrap_or(TensorLayout::Same))
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
        if let Some(range) = self.row_ranges.get(name)
            && self.stored(name).is_none()
        {
            let mut all = expected.to_vec();
            // More or fewer rows than are meant are refused as those of all are.
            all[0] = range.total + expected[0] - range.rows.len();
            return Ok(self.view(&range.of, &all)?.of_rows(range.rows.clone()));
        }
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

#[cfg(test)]
mod tests;
