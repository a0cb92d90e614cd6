//! From queries and keys to scores.

use std::marker::PhantomData;

use speculation::simd::Kernel;

use super::super::{
    ahead::NeededLines,
    lanes::{LaneNumber, Lanes},
    scores::numbers_mut,
};
use crate::cache::LANES;

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
