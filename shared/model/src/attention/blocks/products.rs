//! From queries and keys in blocks to scores.

use std::marker::PhantomData;

use speculation::simd::Kernel;

use super::super::{ahead::NeededLines, lanes::bytes::ByteLanes, scores::numbers_mut};
use crate::{
    cache::{KeyBlock, LANES},
    linear::InputBlock,
};

/// Products of `N` queries with the keys of a page, `B` times sixteen slots at a time: several sums go on at once, so
/// that none waits for the last addition to its own.
pub(super) struct ByteProducts<'a, L, const N: usize, const B: usize> {
    /// `(blocks, N)`.
    pub(super) queries: &'a [InputBlock],
    /// What products are multiplied by.
    pub(super) scale: f32,
    /// `(4, blocks)`.
    pub(super) keys: &'a [KeyBlock],
    /// What is needed next: it is asked for little by little.
    pub(super) ahead: NeededLines,
    /// Times sixteen slots, from the page's first on.
    pub(super) slots: usize,
    /// Where the scores go, whole groups of `B` times sixteen from each of `at` on.
    pub(super) scores: &'a mut [f32],
    pub(super) at: [usize; N],
    pub(super) lanes: PhantomData<L>,
}

impl<L: ByteLanes, const N: usize, const B: usize> Kernel for ByteProducts<'_, L, N, B> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let queries = self.queries.as_chunks::<N>().0;
        let blocks = queries.len();
        let steps = self.slots.div_ceil(B) * blocks * KeyBlock::STEPS;
        let mut ahead = self.ahead.in_steps(steps);
        for first in (0..self.slots).step_by(B) {
            // Of query n and slots b at [n][b].
            let mut totals = [[L::zero(); B]; N];
            for (block, queries) in queries.iter().enumerate() {
                let keys: [&KeyBlock; B] =
                    std::array::from_fn(|b| &self.keys[(first + b) * blocks + block]);
                let mut sums = [[L::start(&queries[0]); B]; N];
                unrolled!(n in N => sums[n] = [L::start(&queries[n]); B]);
                for step in 0..KeyBlock::STEPS {
                    ahead.step::<L>();
                    unrolled!(b in B => {
                        let keys = L::load_keys(&keys[b].quants[step]);
                        unrolled!(n in N => {
                            sums[n][b] = L::add_keys(sums[n][b], keys, queries[n].quants[step]);
                        });
                    });
                }
                unrolled!(b in B => {
                    let scales = L::load_half(&keys[b].scales);
                    unrolled!(n in N => {
                        let products = L::numbers(sums[n][b]).times(scales);
                        totals[n][b] = totals[n][b].add_scaled(products, queries[n].scale);
                    });
                });
            }
            unrolled!(n in N => unrolled!(b in B => {
                let at = self.at[n] + (first + b) * LANES;
                totals[n][b].scaled(self.scale).store(numbers_mut(self.scores, at));
            }));
        }
    }
}
