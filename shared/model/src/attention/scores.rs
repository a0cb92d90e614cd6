//! From queries and keys to weights.

use speculation::exp::exp;

use super::{
    AttentionScoring, Bias,
    lanes::{LaneNumber, Lanes},
};
use crate::{activation::tanh, cache::LANES, norm::sum_lanes};

/// Most sums at a time, `N * B`.
const MOST: usize = 8;

/// Products of `N` queries, each `(head_dim)`, with the keys of a page, `(4, head_dim, 16)`, for its first
/// `blocks` blocks of 16 slots, `B` at a time: several sums go on at once, so that none waits for the last
/// addition to its own. Goes to `scores` at each of `at`, whole groups of `B` blocks. A score's bits depend
/// neither on its lane nor on what is computed beside it.
#[inline(always)]
pub(super) fn products<L: Lanes, T: LaneNumber, const N: usize, const B: usize>(
    queries: [&[f32]; N],
    keys: &[[T; LANES]],
    blocks: usize,
    scores: &mut [f32],
    at: [usize; N],
) {
    let head_dim = queries[0].len();
    let queries = queries.map(|query| &query[..head_dim]);
    for first in (0..blocks).step_by(B) {
        // Sum i is that of query i / B and block i % B.
        let mut sums = [L::zero(); MOST];
        let keys: [&[[T; LANES]]; B] =
            std::array::from_fn(|b| &keys[(first + b) * head_dim..][..head_dim]);
        for d in 0..head_dim {
            unrolled!(b in B => {
                let keys: L = T::load(&keys[b][d]);
                unrolled!(n in N => {
                    sums[n * B + b] = sums[n * B + b].add_scaled(keys, queries[n][d]);
                });
            });
        }
        unrolled!(i in N * B => {
            let at = at[i / B] + (first + i % B) * LANES;
            sums[i].store(numbers_mut(scores, at));
        });
    }
}

/// Sixteen numbers of `numbers` from `at` on.
#[inline(always)]
pub(super) fn numbers_mut(numbers: &mut [f32], at: usize) -> &mut [f32; LANES] {
    numbers[at..].first_chunk_mut().expect("sixteen numbers")
}

/// Scales and caps products.
#[inline(always)]
pub(super) fn scale(scores: &mut [f32], scoring: AttentionScoring) {
    for scores in scores.as_chunks_mut::<LANES>().0 {
        *scores = scores.map(|sum| sum * scoring.scale);
        if let Some(cap) = scoring.softcap {
            *scores = scores.map(|score| cap * tanh(score / cap));
        }
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
/// and returns their sum.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32], first: usize, visible: usize) -> f32 {
    scores[..first].fill(f32::NEG_INFINITY);
    scores[visible..].fill(f32::NEG_INFINITY);
    let blocks = scores.as_chunks_mut::<LANES>().0;
    let mut largest = [f32::NEG_INFINITY; LANES];
    for block in &*blocks {
        for lane in 0..LANES {
            largest[lane] = larger(largest[lane], block[lane]);
        }
    }
    let largest = largest.into_iter().fold(f32::NEG_INFINITY, larger);
    let mut sums = [0.0_f32; LANES];
    for block in blocks {
        for lane in 0..LANES {
            block[lane] = exp(block[lane] - largest);
            sums[lane] += block[lane];
        }
    }
    sum_lanes(sums)
}

/// The larger of two scores; unlike `f32::max` one instruction, for it need not care for NaN.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}
