//! Matrices as a model computes with them.

use candle_core::quantized::GgmlDType;

#[cfg(feature = "device")]
use super::encode;
use super::ggml_type::TensorFormat;
use super::rows::StackedRows;
use super::{TensorLayout, Weights, WeightsError, stored};
use crate::cpu::Cpu;
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
    /// Blocks that are in that format already are taken as they are, where they lie. Threads share the rows, and no more
    /// than some numbers of one row are in f32 at a time and thread.
    ///
    /// # Errors
    /// As [`Weights::tensor`]; of several the first in the order of `parts`.
    pub(crate) fn linear(
        &self,
        parts: &[(String, [usize; 2])],
        bias: Option<Vec<f32>>,
        format: WeightFormat,
        order: OutputOrder,
    ) -> Result<Linear, WeightsError> {
        let Some(store) = &self.packed else {
            return self.pack(parts, bias, format, order);
        };
        for (name, shape) in parts {
            self.check(name, shape)?;
        }
        let shape = shape_of(parts);
        let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        let key = format!("{} {order:?} {shape:?}", names.join(" "));
        let bias_given = bias.clone();
        let kept = store
            .find(&key)
            .and_then(|(map, range)| Linear::mapped(order, shape, bias_given, format, map, range));
        if let Some(linear) = kept {
            let sizes = parts.iter().map(|(name, shape)| self.view(name, shape));
            for stored in sizes {
                self.progress.read(stored?.bytes.len() as u64);
            }
            return Ok(linear);
        }
        let linear = self.pack(parts, bias, format, order)?;
        store.keep(&key, linear.packed_bytes());
        Ok(linear)
    }

    /// Packs the matrices from the tensors in the files.
    fn pack(
        &self,
        parts: &[(String, [usize; 2])],
        bias: Option<Vec<f32>>,
        format: WeightFormat,
        order: OutputOrder,
    ) -> Result<Linear, WeightsError> {
        let [outputs, inputs] = shape_of(parts);
        let wanted = blocks_of(format, inputs).filter(|wanted| self.is_any_stored(parts, *wanted));
        let rows = StackedRows::of(self, parts, wanted);
        // An error in an earlier matrix comes before that of one that cannot be read by rows.
        let Ok(Some(mut rows)) = rows else {
            let mut values = Vec::with_capacity(outputs * inputs);
            for (name, shape) in parts {
                self.append(name, shape, &mut values)?;
            }
            return Ok(Linear::in_order(order, &values, bias, inputs, format));
        };
        let (cpu, shape) = (Cpu::detect(), [outputs, inputs]);
        let mut linear = Linear::of_rows(&cpu, order, shape, &rows, bias.clone(), format);
        if rows.is_too_large() {
            // As if none were blocks.
            rows = rows.into_numbers();
            linear = Linear::of_rows(&cpu, order, shape, &rows, bias, format);
        }
        if let Some(broken) = rows.broken() {
            let name = self.described(&parts[broken].0);
            return Err(WeightsError::NotFinite { name });
        }
        rows.sizes().for_each(|bytes| self.progress.read(bytes));
        Ok(linear)
    }

    /// Whether one of the matrices is stored in the format `wanted`.
    fn is_any_stored(&self, parts: &[(String, [usize; 2])], wanted: GgmlDType) -> bool {
        parts.iter().any(|(name, _)| {
            let range = self.row_ranges.get(name).map(|range| &range.of);
            let stored = self.stored(name).or_else(|| self.stored(range?));
            stored.is_some_and(|stored| stored.info.format == Some(wanted.into()))
        })
    }

    /// Matrices as one, in blocks of the format `wanted`: as they are stored, or else quantised; `None` if their
    /// numbers cannot be in it, as rows that are no whole blocks.
    ///
    /// # Errors
    /// As [`Weights::tensor`].
    #[cfg(feature = "device")]
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

/// The shape of matrices that are stacked, `(outputs, inputs)`.
fn shape_of(parts: &[(String, [usize; 2])]) -> [usize; 2] {
    let inputs = parts.first().map_or(0, |(_, [_, inputs])| *inputs);
    [parts.iter().map(|(_, [outputs, _])| outputs).sum(), inputs]
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
