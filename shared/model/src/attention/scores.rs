//! From queries and keys to weights.

use std::marker::PhantomData;

use speculation::exp::exp;
use speculation::simd::Kernel;

use super::{
    Bias,
    ahead::NeededLines,
    lanes::{LaneNumber, Lanes},
    partials::ChunkSum,
};
use crate::{activation::tanh, cache::LANES, norm::sum_lanes};

/// Products of `N` queries with the keys of a page, `B` blocks of 16 slots at a time: several sums go on at once,
/// so that none waits for the last addition to its own. A score's bits depend neither on its lane nor on what is
/// computed beside it.
pub(super) struct Products<'a, L, T, const N: usize, const B: usize> {
    /// `(head_dim, N)`.
    pub(super) queries: &'a [f32],
    /// What products are multiplied by.
    pub(super) scale: f32,
    /// `(4, head_dim, 16)`.
    pub(super) keys: &'a [[T; LANES]],
    /// What is needed next: it is asked for little by little.
    pub(super) ahead: NeededLines,
    /// Blocks of 16 slots, from the page's first on.
    pub(super) blocks: usize,
    /// Where the scores go, whole groups of `B` blocks from each of `at` on.
    pub(super) scores: &'a mut [f32],
    pub(super) at: [usize; N],
    pub(super) lanes: PhantomData<L>,
}

impl<L: Lanes, T: LaneNumber, const N: usize, const B: usize> Kernel for Products<'_, L, T, N, B> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let queries = self.queries.as_chunks::<N>().0;
        let head_dim = queries.len();
        let steps = self.blocks.div_ceil(B) * head_dim;
        let mut ahead = self.ahead.in_steps(steps);
        for first in (0..self.blocks).step_by(B) {
            // Of query n and block b at [n][b].
            let mut sums = [[L::zero(); B]; N];
            let keys = &self.keys[first * head_dim..][..B * head_dim];
            for (d, queries) in queries.iter().enumerate() {
                ahead.step::<L>();
                unrolled!(b in B => {
                    let keys: L = T::load(&keys[b * head_dim + d]);
                    unrolled!(n in N => {
                        sums[n][b] = sums[n][b].add_scaled(keys, queries[n]);
                    });
                });
            }
            unrolled!(n in N => unrolled!(b in B => {
                let at = self.at[n] + (first + b) * LANES;
                sums[n][b].scaled(self.scale).store(numbers_mut(self.scores, at));
            }));
        }
    }
}

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

/// Turns the scores of `first..visible` into exponentials relative to the largest, the rest into zeros,
/// and returns the largest and their sum.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32], first: usize, visible: usize) -> ChunkSum {
    scores[..first].fill(f32::NEG_INFINITY);
    scores[visible..].fill(f32::NEG_INFINITY);
    let blocks = scores.as_chunks_mut::<LANES>().0;
    // Not below any number: a chunk whose scores are all infinite adds nothing.
    let mut largest = [f32::MIN; LANES];
    for block in &*blocks {
        for lane in 0..LANES {
            largest[lane] = larger(largest[lane], block[lane]);
        }
    }
    let largest = largest.into_iter().fold(f32::MIN, larger);
    let mut sums = [0.0_f32; LANES];
    for block in blocks {
        for lane in 0..LANES {
            block[lane] = exp(block[lane] - largest);
            sums[lane] += block[lane];
        }
    }
    ChunkSum {
        largest,
        total: sum_lanes(sums),
    }
}

/// The larger of two scores; unlike `f32::max` one instruction, for it need not care for NaN.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}
