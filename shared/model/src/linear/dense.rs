//! Full precision: f32 weights, 32 outputs interleaved.
//!
//! Within a chunk of the inputs each result is one chain of fused multiply-adds in their order: a product is
//! never rounded by itself. The chunks' results are added in order, which is more precise than one long chain.
//! Lanes are outputs, so the width of the vectors changes nothing.

use std::ops::Range;

use super::block::{LANES, OutputSums, PackedBlock, VECTORS};
use super::mapped::PlainBlock;
use super::rows::RowPart;

/// Inputs of a chunk.
const CHUNK: usize = 128;

/// Weights of one input.
pub(super) type DenseWeights = [[f32; LANES]; VECTORS];

// SAFETY: an array of f32.
unsafe impl PlainBlock for DenseWeights {}

/// Takes some inputs of `output`, as many as there are `weights`.
pub(super) fn pack(weights: &mut [DenseWeights], output: usize, row: &RowPart<'_>) {
    // There are no blocks of this format.
    if let RowPart::Numbers(row) = row {
        for (weights, &weight) in weights.iter_mut().zip(*row) {
            weights.as_flattened_mut()[output] = weight;
        }
    }
}

impl PackedBlock for DenseWeights {
    type Input = f32;
    type Inputs<'a, const ROWS: usize> = [&'a [f32]; ROWS];
    const INPUTS: usize = 1;
    const STEPS: usize = 1;
    const EMPTY: Self = [[0.0; LANES]; VECTORS];

    /// What is added up in one chain is part of the result: not to be chosen by size.
    fn chunk_len(_per_row: usize) -> usize {
        CHUNK
    }

    fn read(&self, output: usize, values: &mut [f32]) {
        values[0] = self.as_flattened()[output];
    }

    fn inputs<const ROWS: usize>(x: &[f32], chunk: Range<usize>) -> [&[f32]; ROWS] {
        let inputs = x.len() / ROWS;
        std::array::from_fn(|row| &x[row * inputs..][chunk.clone()])
    }

    fn dot_portable<const ROWS: usize>(
        weights: &[Self],
        x: [&[f32]; ROWS],
        sums: &mut [OutputSums; ROWS],
    ) {
        for (x, totals) in x.into_iter().zip(sums) {
            let mut sums = Self::EMPTY;
            for (weights, &x) in weights.iter().zip(x) {
                let sums = sums.as_flattened_mut().iter_mut();
                for (sum, weight) in sums.zip(weights.as_flattened()) {
                    *sum = weight.mul_add(x, *sum);
                }
            }
            let totals = totals.as_flattened_mut().iter_mut();
            for (total, sum) in totals.zip(sums.as_flattened()) {
                *total += sum;
            }
        }
    }
}
