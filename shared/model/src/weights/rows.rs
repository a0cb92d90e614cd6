//! The rows of matrices where they are stored, one matrix after the other, for threads that read them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use candle_core::quantized::GgmlDType;
use half::f16;

use super::ggml_type::TensorFormat;
use super::stored::{self, StoredTensor};
use super::{TensorLayout, Weights, WeightsError, ggml_type};
use crate::linear::{MatrixRows, RowPart};

/// Matrices of as many inputs, stacked, and what was found while their rows were read.
pub(super) struct StackedRows<'a> {
    parts: Vec<StoredMatrix<'a>>,
    /// The format whose blocks are taken as they are.
    wanted: Option<GgmlDType>,
    /// The first part that holds what is no finite number; as many as there are if none does.
    broken: AtomicUsize,
    /// Whether a number was found that the format of the blocks beside it cannot hold.
    too_large: AtomicBool,
}

struct StoredMatrix<'a> {
    stored: StoredTensor<'a>,
    format: TensorFormat,
    /// Bytes of a row.
    row: usize,
    /// Their rows among those of all matrices.
    rows: Range<usize>,
}

impl<'a> StackedRows<'a> {
    /// The matrices `parts`, `(outputs, inputs)` each; rows in blocks of the format `wanted` are read as they are.
    /// `None` if rows are stored that are no whole blocks, or in a format that is not known.
    ///
    /// # Errors
    /// If one is missing, or has another shape.
    pub(super) fn of(
        weights: &'a Weights,
        parts: &[(String, [usize; 2])],
        wanted: Option<GgmlDType>,
    ) -> Result<Option<Self>, WeightsError> {
        let mut matrices = Vec::with_capacity(parts.len());
        let mut first = 0;
        for (name, shape) in parts {
            let stored = weights.view(name, shape)?;
            let [outputs, inputs] = *shape;
            let Some((format, row)) = stored.whole_row(inputs) else {
                return Ok(None);
            };
            matrices.push(StoredMatrix {
                stored,
                format,
                row,
                rows: first..first + outputs,
            });
            first += outputs;
        }
        Ok(Some(Self {
            broken: AtomicUsize::new(matrices.len()),
            parts: matrices,
            wanted,
            too_large: AtomicBool::new(false),
        }))
    }

    /// The part that holds what is no finite number, if a row was read that does: the first.
    pub(super) fn broken(&self) -> Option<usize> {
        let broken = self.broken.load(Ordering::Relaxed);
        (broken < self.parts.len()).then_some(broken)
    }

    /// Whether a row was read that the format of the blocks beside it cannot hold.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    /// Reads all rows as numbers from now on.
    pub(super) fn into_numbers(self) -> Self {
        Self {
            wanted: None,
            ..self
        }
    }

    /// Bytes of each part as it is stored.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map(|part| part.stored.bytes.len() as u64)
    }

    fn found_broken(&self, part: usize) {
        self.broken.fetch_min(part, Ordering::Relaxed);
    }
}

impl MatrixRows for StackedRows<'_> {
    fn read<'b>(
        &'b self,
        output: usize,
        inputs: Range<usize>,
        buffer: &'b mut Vec<f32>,
    ) -> RowPart<'b> {
        let is_of = |part: &StoredMatrix<'_>| output < part.rows.end;
        let index = self.parts.partition_point(|part| !is_of(part));
        let part = &self.parts[index];
        let row = part.stored.row(output - part.rows.start, part.row);
        let at = |input| ggml_type::size(part.format, input).unwrap_or(row.len());
        let bytes = &row[at(inputs.start)..at(inputs.end)];
        let is_plus_one = part.stored.layout == TensorLayout::PlusOne;
        if let Some(wanted) = self.wanted
            && part.format == wanted.into()
            && !is_plus_one
        {
            if stored::scales_are_finite(wanted, bytes) == Some(false) {
                self.found_broken(index);
            }
            return RowPart::Blocks(bytes);
        }
        buffer.clear();
        let decoded = stored::decode(part.format, bytes, buffer);
        if is_plus_one {
            for value in &mut *buffer {
                *value -= 1.0;
            }
        }
        let mut all_finite = decoded.is_ok();
        for value in &*buffer {
            all_finite &= value.is_finite();
        }
        if !all_finite {
            self.found_broken(index);
        }
        if self.wanted == Some(GgmlDType::Q8_0) {
            let largest = buffer.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
            if !f16::from_f32(largest / 127.0).is_finite() {
                self.too_large.store(true, Ordering::Relaxed);
            }
        }
        RowPart::Numbers(buffer)
    }
}
