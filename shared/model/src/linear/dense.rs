//! Full precision: f32 weights, 32 outputs interleaved.
//!
//! Within a chunk of the inputs each result is one chain of fused multiply-adds in their order: a product is
//! never rounded by itself. The chunks' results are added in order, which is more precise than one long chain.
//! Lanes are outputs, so the width of the vectors changes nothing.

use std::ops::Range;

use speculation::simd::Level;

#[cfg(target_arch = "x86_64")]
use super::dense_x86;
use super::{
    blocked::{Ahead, GROUP, LANES, Packed, Sums, VECTORS},
    order::Order,
    storage::Storage,
};

/// Inputs of a chunk.
const CHUNK: usize = 128;

/// Weights of one input.
pub(super) type Weights = [[f32; LANES]; VECTORS];

/// A matrix `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct DenseMatrix {
    /// `(groups of 32 outputs, inputs, 32)`, padded with zeros.
    weights: Storage<Weights>,
    inputs: usize,
}

impl DenseMatrix {
    /// Interleaves `weights`, `(outputs, inputs)`.
    pub(super) fn interleave(weights: &[f32], inputs: usize, order: Order) -> Self {
        let outputs = weights.len() / inputs;
        let groups = order.outputs(outputs).div_ceil(GROUP);
        let mut interleaved = Storage::filled([[0.0; LANES]; VECTORS], groups * inputs);
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let output = order.place(output, outputs);
            let group = &mut interleaved[output / GROUP * inputs..][..inputs];
            for (weights, &weight) in group.iter_mut().zip(row) {
                weights.as_flattened_mut()[output % GROUP] = weight;
            }
        }
        Self {
            weights: interleaved,
            inputs,
        }
    }

    /// Bytes of the weights.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.weights)
    }

    /// Writes the weights of one output, `(inputs)`.
    pub(super) fn read_row(&self, output: usize, row: &mut [f32]) {
        let group = &self.weights[output / GROUP * self.inputs..];
        for (value, weights) in row.iter_mut().zip(group) {
            *value = weights.as_flattened()[output % GROUP];
        }
    }
}

impl Packed for DenseMatrix {
    type Input = f32;

    fn groups(&self) -> usize {
        self.weights.len() / self.inputs
    }

    fn start(&self, group: usize) -> *const i8 {
        self.weights[group * self.inputs..].as_ptr().cast()
    }

    fn row_len(&self) -> usize {
        self.inputs
    }

    fn chunk_len(&self) -> usize {
        CHUNK
    }

    fn add(
        &self,
        level: Level,
        group: usize,
        chunk: Range<usize>,
        x: &[f32],
        sums: &mut [Sums],
        ahead: Ahead,
    ) {
        let weights = &self.weights[group * self.inputs..][..self.inputs][chunk.clone()];
        let x = &x[chunk.start..];
        match sums.len() {
            1 => dot::<1>(level, weights, x, self.inputs, sums, ahead),
            2 => dot::<2>(level, weights, x, self.inputs, sums, ahead),
            3 => dot::<3>(level, weights, x, self.inputs, sums, ahead),
            4 => dot::<4>(level, weights, x, self.inputs, sums, ahead),
            5 => dot::<5>(level, weights, x, self.inputs, sums, ahead),
            _ => dot::<6>(level, weights, x, self.inputs, sums, ahead),
        }
    }
}

/// Adds the products of `ROWS` rows of `x`, a row every `stride` numbers, with `weights`.
fn dot<const ROWS: usize>(
    level: Level,
    weights: &[Weights],
    x: &[f32],
    stride: usize,
    sums: &mut [Sums],
    ahead: Ahead,
) {
    let x: [&[f32]; ROWS] = std::array::from_fn(|row| &x[row * stride..][..weights.len()]);
    let sums: &mut [Sums; ROWS] = sums.try_into().expect("a sum a row");
    match level {
        // SAFETY: this level is made only on CPUs with the features that `dot_avx512` enables; the
        // lengths are as it asks, by the lines above, and weights are held in aligned storage.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => dense_x86::dot_avx512::<ROWS, LINES>(weights, x, sums, start));
        },
        // SAFETY: as above, with AVX2.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => dense_x86::dot_avx2::<ROWS, LINES>(weights, x, sums, start));
        },
        Level::Baseline => dot_portable(weights, x, sums),
    }
}

fn dot_portable<const ROWS: usize>(
    weights: &[Weights],
    x: [&[f32]; ROWS],
    sums: &mut [Sums; ROWS],
) {
    for (x, totals) in x.into_iter().zip(sums) {
        let mut sums = Weights::default();
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
