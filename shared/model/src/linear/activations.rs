//! What a matrix is multiplied with, brought to the form it takes while it is computed.

use speculation::simd::Level;

use super::{
    Linear, PackedMatrix,
    inputs::{BLOCK, InputBlock, Quantized, QuantizedRow, quantize},
};
use crate::cpu::SharedSlice;

/// Activations of some rows, as the matrix they are meant for takes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activations {
    rows: usize,
    /// `(rows, inputs)`, of a matrix in f32.
    pub(super) values: Vec<f32>,
    /// Of the others.
    pub(super) blocks: Vec<InputBlock>,
}

/// Where they are written to, 32 inputs of a row at a time.
pub(crate) struct ActivationsWriter<'a> {
    inputs: usize,
    form: ActivationForm<'a>,
}

/// The same of one row.
pub(crate) enum ActivationsRow<'a> {
    Values {
        values: &'a SharedSlice<'a, f32>,
        first: usize,
        inputs: usize,
    },
    Blocks(QuantizedRow<'a>),
}

enum ActivationForm<'a> {
    Values(SharedSlice<'a, f32>),
    Blocks(Quantized<'a>),
}

impl Activations {
    /// Room for `rows` rows of what `linear` takes. All of it is to be written.
    pub(crate) fn writer(&mut self, linear: &Linear, rows: usize) -> ActivationsWriter<'_> {
        let inputs = linear.inputs;
        self.rows = rows;
        let form = match &linear.matrix {
            PackedMatrix::Dense(_) => {
                self.values.resize(rows * inputs, 0.0);
                ActivationForm::Values(SharedSlice::new(&mut self.values))
            }
            PackedMatrix::Q8(_) | PackedMatrix::Q4(_) => {
                ActivationForm::Blocks(Quantized::new(rows, inputs, &mut self.blocks))
            }
        };
        ActivationsWriter { inputs, form }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

impl ActivationsWriter<'_> {
    /// Where the inputs of `row` go.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> ActivationsRow<'_> {
        match &self.form {
            ActivationForm::Values(values) => ActivationsRow::Values {
                values,
                first: row * self.inputs,
                inputs: self.inputs,
            },
            ActivationForm::Blocks(blocks) => ActivationsRow::Blocks(blocks.row(row)),
        }
    }
}

impl ActivationsRow<'_> {
    /// Writes the inputs from 32 * `block` on. Of the last block what is beyond the inputs is to be 0. To be
    /// inlined into what is compiled for `level`.
    ///
    /// # Safety
    /// Nobody else writes them meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, level: Level, block: usize, inputs: &[f32; BLOCK]) {
        match self {
            Self::Values {
                values,
                first,
                inputs: count,
            } => {
                let start = block * BLOCK;
                let count = BLOCK.min(count - start);
                // SAFETY: the caller's promise.
                let place = unsafe { values.range(first + start, count) };
                place.copy_from_slice(&inputs[..count]);
            }
            // SAFETY: the caller's promise.
            Self::Blocks(blocks) => unsafe { blocks.write(block, quantize(level, inputs)) },
        }
    }
}
