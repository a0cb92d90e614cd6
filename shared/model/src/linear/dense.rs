//! Full precision: f32 weights, sixteen outputs interleaved.
//!
//! Each result is the sum of the products at even inputs plus the sum of those at odd inputs, each
//! in the order of the inputs: two chains hide some of an addition's latency. Lanes are outputs, so
//! the width of the vectors changes nothing.

use speculation::simd::{Kernel, Level};

/// Outputs that stand interleaved.
pub(super) const LANES: usize = 16;
/// Most activation rows served by one pass over the weights of a group.
const TILE: usize = 5;

/// A matrix `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct DenseMatrix {
    /// `(groups of 16 outputs, inputs, 16)`, padded with zeros.
    weights: Vec<[f32; LANES]>,
    inputs: usize,
}

impl DenseMatrix {
    /// Interleaves `weights`, `(outputs, inputs)`.
    pub(super) fn interleave(weights: &[f32], inputs: usize) -> Self {
        let outputs = weights.len() / inputs;
        let mut interleaved = vec![[0.0; LANES]; outputs.div_ceil(LANES) * inputs];
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let group = &mut interleaved[output / LANES * inputs..][..inputs];
            for (lanes, &weight) in group.iter_mut().zip(row) {
                lanes[output % LANES] = weight;
            }
        }
        Self {
            weights: interleaved,
            inputs,
        }
    }

    /// Writes the weights of one output, `(inputs)`.
    pub(super) fn read_row(&self, output: usize, row: &mut [f32]) {
        let group = &self.weights[output / LANES * self.inputs..];
        for (value, lanes) in row.iter_mut().zip(group) {
            *value = lanes[output % LANES];
        }
    }

    /// The products of every row of `x`, `(rows, inputs)`, with the 16 outputs of `group`, handed
    /// to `write` as (row, results).
    pub(super) fn product(
        &self,
        level: Level,
        group: usize,
        x: &[f32],
        mut write: impl FnMut(usize, &[f32; LANES]),
    ) {
        let weights = &self.weights[group * self.inputs..][..self.inputs];
        for (tile, x) in x.chunks(TILE * self.inputs).enumerate() {
            let mut results = [[0.0; LANES]; TILE];
            let rows = x.len() / self.inputs;
            match rows {
                1 => level.run(Dot::<1>(weights, x, &mut results)),
                2 => level.run(Dot::<2>(weights, x, &mut results)),
                3 => level.run(Dot::<3>(weights, x, &mut results)),
                4 => level.run(Dot::<4>(weights, x, &mut results)),
                _ => level.run(Dot::<TILE>(weights, x, &mut results)),
            }
            for (row, result) in results.iter().take(rows).enumerate() {
                write(tile * TILE + row, result);
            }
        }
    }
}

/// Products of `ROWS` rows with 16 outputs: weights `(inputs, 16)`, rows `(ROWS, inputs)`, and
/// where the results go, `(ROWS, 16)`.
struct Dot<'a, const ROWS: usize>(&'a [[f32; LANES]], &'a [f32], &'a mut [[f32; LANES]; TILE]);

impl<const ROWS: usize> Kernel for Dot<'_, ROWS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(weights, x, results) = self;
        let x: [&[f32]; ROWS] =
            std::array::from_fn(|row| &x[row * weights.len()..][..weights.len()]);
        let mut even = [[0.0_f32; LANES]; ROWS];
        let mut odd = [[0.0_f32; LANES]; ROWS];
        let (pairs, last) = weights.as_chunks::<2>();
        for (i, [first, second]) in pairs.iter().enumerate() {
            for row in 0..ROWS {
                add_scaled(&mut even[row], first, x[row][2 * i]);
                add_scaled(&mut odd[row], second, x[row][2 * i + 1]);
            }
        }
        for weight in last {
            for row in 0..ROWS {
                add_scaled(&mut even[row], weight, x[row][weights.len() - 1]);
            }
        }
        for row in 0..ROWS {
            add_scaled(&mut even[row], &odd[row], 1.0);
            results[row] = even[row];
        }
    }
}

#[inline(always)]
fn add_scaled(sums: &mut [f32; LANES], weights: &[f32; LANES], x: f32) {
    for (sum, weight) in sums.iter_mut().zip(weights) {
        *sum += weight * x;
    }
}
