//! Causal grouped-query attention of one position over a sequence's cache.
//!
//! Every sum runs over the logical positions in a fixed order: a score over the dimensions, the
//! normaliser over sixteen lanes of positions, a value over the even and the odd positions apart.
//! So the result depends on the sequence alone, not on how it was cut into forwards.
//!
//! A row of a token tree sees a sequence that ends in a branch. The branch's keys and values stay in
//! the slots they were written to; its scores are brought to their logical positions before anything is
//! summed over them, and its values are read in logical order. So the bits are those of the path alone.

use speculation::simd::Kernel;

use speculation::exp::exp;

use crate::{
    cache::{LANES, LayerCache},
    norm::sum_lanes,
};

/// Dimensions of a value summed side by side.
const STRIP: usize = 32;

/// One position's attention in one layer.
pub(crate) struct Attention<'a> {
    /// `(heads, head_dim)`.
    pub(crate) query: &'a [f32],
    pub(crate) cache: &'a LayerCache,
    /// Positions attended to: the query's own and all before it.
    pub(crate) visible: usize,
    /// Where the last of them stand, as distances from the slot of the first of these; they grow.
    /// Empty where slots are positions.
    pub(crate) branch: &'a [u32],
    /// Room for the scores, reused.
    pub(crate) scores: &'a mut Vec<f32>,
    /// The result, `(heads, head_dim)`.
    pub(crate) output: &'a mut [f32],
}

impl Kernel for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let head_dim = self.cache.head_dim();
        let group = self.query.len() / head_dim / self.cache.kv_heads();
        let trunk = self.visible - self.branch.len();
        let slots = (self.branch.last()).map_or(self.visible, |last| trunk + *last as usize + 1);
        self.scores.clear();
        self.scores.resize(slots.next_multiple_of(LANES), 0.0);
        let padded = self.visible.next_multiple_of(LANES);
        let queries = self.query.chunks_exact(head_dim);
        let outputs = self.output.chunks_exact_mut(head_dim);
        for (head, (query, output)) in queries.zip(outputs).enumerate() {
            let kv_head = head / group;
            score(query, self.cache, kv_head, self.scores);
            for (position, &slot) in (trunk..).zip(self.branch) {
                // Never overwrites a score yet to be read: a node stands after its ancestors.
                self.scores[position] = self.scores[trunk + slot as usize];
            }
            let total = softmax(&mut self.scores[..padded], self.visible);
            let (values, stride) = self.cache.values(kv_head);
            for (strip, output) in output.chunks_mut(STRIP).enumerate() {
                let values = &values[strip * STRIP..];
                let weights = &self.scores[..self.visible];
                if output.len() == STRIP {
                    mix::<STRIP>(weights, values, stride, self.branch, output);
                } else {
                    for (i, output) in output.chunks_mut(1).enumerate() {
                        mix::<1>(weights, &values[i..], stride, self.branch, output);
                    }
                }
            }
            for output in output {
                *output /= total;
            }
        }
    }
}

/// Scaled products of `query`, `(head_dim)`, with the keys of `kv_head`, for whole blocks of 16
/// slots. A score's bits do not depend on its lane.
#[inline(always)]
fn score(query: &[f32], cache: &LayerCache, kv_head: usize, scores: &mut [f32]) {
    let scale = 1.0 / (query.len() as f32).sqrt();
    for (block, scores) in scores.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut sums = [0.0_f32; LANES];
        for (&q, keys) in query.iter().zip(cache.keys(block, kv_head)) {
            for lane in 0..LANES {
                sums[lane] += q * keys[lane];
            }
        }
        *scores = sums.map(|sum| sum * scale);
    }
}

/// Turns the first `visible` scores into exponentials relative to the largest, the rest into zeros,
/// and returns their sum.
#[inline(always)]
fn softmax(scores: &mut [f32], visible: usize) -> f32 {
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

/// `output[d]` = sum over positions `t` of `weights[t] * values[slot(t) * stride + d]`, for `N`
/// dimensions; the slots of the last positions are given by `branch`.
#[inline(always)]
fn mix<const N: usize>(
    weights: &[f32],
    values: &[f32],
    stride: usize,
    branch: &[u32],
    output: &mut [f32],
) {
    let mut even = [0.0_f32; N];
    let mut odd = [0.0_f32; N];
    let (trunk, outer) = weights.split_at(weights.len() - branch.len());
    let (pairs, last) = trunk.as_chunks::<2>();
    for (t, [first, second]) in pairs.iter().enumerate() {
        let a = &values[2 * t * stride..][..N];
        let b = &values[(2 * t + 1) * stride..][..N];
        for d in 0..N {
            even[d] += first * a[d];
            odd[d] += second * b[d];
        }
    }
    for weight in last {
        let a = &values[(trunk.len() - 1) * stride..][..N];
        for d in 0..N {
            even[d] += weight * a[d];
        }
    }
    for ((position, weight), &slot) in (trunk.len()..).zip(outer).zip(branch) {
        let a = &values[(trunk.len() + slot as usize) * stride..][..N];
        let sums = if position % 2 == 0 {
            &mut even
        } else {
            &mut odd
        };
        for d in 0..N {
            sums[d] += weight * a[d];
        }
    }
    for d in 0..N {
        output[d] = even[d] + odd[d];
    }
}

#[cfg(test)]
mod tests;
