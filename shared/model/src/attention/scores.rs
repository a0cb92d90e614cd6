//! From scores to weights.

use std::ops::Range;

use speculation::simd::Kernel;

use super::{Bias, exponential::exponential, partials::ChunkSum};
use crate::{
    activation::tanh,
    cache::LANES,
    norm::{fold_lanes, sum_lanes},
};

/// Sixteen numbers of `numbers` from `at` on.
#[inline(always)]
pub(super) fn numbers_mut(numbers: &mut [f32], at: usize) -> &mut [f32; LANES] {
    numbers[at..].first_chunk_mut().expect("sixteen numbers")
}

/// Caps scores.
#[inline(always)]
pub(super) fn cap(scores: &mut [f32], softcap: f32) {
    for scores in scores.as_chunks_mut::<LANES>().0 {
        *scores = scores.map(|score| softcap * tanh(score / softcap));
    }
}

/// Adds the biases of `head` at the positions from `first` on.
#[inline(always)]
pub(super) fn add_bias(scores: &mut [f32], bias: Bias<'_>, head: usize, first: usize) {
    let row = &bias.table[head * bias.stride + bias.offset + first..][..scores.len()];
    for (score, bias) in scores.iter_mut().zip(row) {
        *score += bias;
    }
}

/// Turns scores into exponentials relative to the largest of the seen ones, those not seen into zeros, and returns the
/// largest and their sum.
pub(super) struct Softmax<'a> {
    /// A whole number of sixteens.
    pub(super) scores: &'a mut [f32],
    pub(super) seen: Range<usize>,
}

impl Kernel for Softmax<'_> {
    type Output = ChunkSum;

    #[inline(always)]
    fn run(self) -> ChunkSum {
        let Self { scores, seen } = self;
        scores[..seen.start].fill(f32::NEG_INFINITY);
        scores[seen.end..].fill(f32::NEG_INFINITY);
        let blocks = scores.as_chunks_mut::<LANES>().0;
        // Not below any number: a chunk whose scores are all infinite adds nothing.
        let mut largest = [f32::MIN; LANES];
        for block in &*blocks {
            for lane in 0..LANES {
                largest[lane] = larger(largest[lane], block[lane]);
            }
        }
        let largest = fold_lanes(largest, larger);
        let mut sums = [0.0_f32; LANES];
        for block in blocks {
            for lane in 0..LANES {
                block[lane] = exponential(block[lane] - largest);
                sums[lane] += block[lane];
            }
        }
        ChunkSum {
            largest,
            total: sum_lanes(sums),
        }
    }
}

/// The larger of two scores; unlike `f32::max` one instruction, for it need not care for NaN.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}
