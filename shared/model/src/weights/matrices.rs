//! Matrices as a model computes with them.

use candle_core::quantized::GgmlDType;

use super::ggml_type::TensorFormat;
use super::{TensorLayout, Weights, WeightsError, encode, stored};
use crate::linear::{Linear, OutputOrder, WeightFormat};

impl Weights {
    /// Formats of all matrices in the files, but of those that are not read.
    pub(crate) fn matrix_formats(&self) -> Vec<TensorFormat> {
        let infos = self.files.iter().flat_map(|file| file.tensors.values());
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
        order: OutputOrder,
    ) -> Result<Linear, WeightsError> {
        let inputs = parts.first().map_or(0, |(_, [_, inputs])| *inputs);
        let outputs: usize = parts.iter().map(|(_, [outputs, _])| outputs).sum();
        if let Some(blocks) = blocks_of(format, inputs)
            && let Some(bytes) = self.stacked_blocks(parts, blocks)?
            && let Some(linear) =
                Linear::from_ggml(order, blocks, &bytes, bias.clone(), outputs, inputs)
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
            let range = self.row_ranges.get(name).map(|range| &range.of);
            let stored = self.stored(name).or_else(|| self.stored(range?));
            stored.is_some_and(|stored| stored.info.format == Some(wanted.into()))
        };
        if !parts.iter().any(is_stored) {
            return Ok(None);
        }
        self.in_blocks(parts, wanted)
    }

    /// Matrices as one, in blocks of the format `wanted`: as they are stored, or else quantised; `None` if their
    /// numbers cannot be in it, as rows that are no whole blocks.
    ///
    /// # Errors
    /// As [`Weights::tensor`].
    pub(crate) fn in_blocks(
        &self,
        parts: &[(String, [usize; 2])],
        wanted: GgmlDType,
    ) -> Result<Option<Vec<u8>>, WeightsError> {
        let mut stacked = Vec::new();
        for (name, shape) in parts {
            if let Some(bytes) = self.blocks(name, shape, wanted)? {
                stacked.extend(bytes);
                continue;
            }
            let values = self.tensor(name, shape)?;
            let Ok(bytes) = encode(name, &values, wanted) else {
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
        if stored.info.format != Some(wanted.into()) || stored.layout == TensorLayout::PlusOne {
            return Ok(None);
        }
        let bytes = stored.rows(wanted.into()).into_owned();
        let finite = match stored::scales_are_finite(wanted, &bytes) {
            Some(finite) => finite,
            // What is wrong with it is found in its numbers.
            None => self.tensor(name, expected).map(|_| true)?,
        };
        if finite {
            self.progress.read(stored.bytes.len() as u64);
            Ok(Some(bytes))
        } else {
            let name = self.described(name);
            Err(WeightsError::NotFinite { name })
        }
    }
}

/// Returns the format of the blocks that a matrix is held in, if its rows are whole ones.
fn blocks_of(format: WeightFormat, inputs: usize) -> Option<GgmlDType> {
    let format = match format.of_rows(inputs) {
        WeightFormat::F32 => return None,
        WeightFormat::Q8_0 => GgmlDType::Q8_0,
        WeightFormat::Q4_K => GgmlDType::Q4K,
    };
    inputs.is_multiple_of(format.block_size()).then_some(format)
}
