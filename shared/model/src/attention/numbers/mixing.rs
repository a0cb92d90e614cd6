//! From weights and values to outputs.

use std::{marker::PhantomData, ops::Range};

use speculation::simd::Kernel;

use super::super::{
    ahead::NeededLines,
    lanes::{LaneNumber, Lanes, side_by_side},
    scores::numbers_mut,
};
use crate::cache::{LANES, PAGE};

/// Values of a page's `slots` times the weights of `N` queries, added to the sums of each over even positions, and over
/// odd ones. The slots of a page are even where its positions are.
pub(super) struct MixedPage<'a, L, T, const N: usize> {
    /// Of the page's slots.
    pub(super) weights: [&'a [f32; PAGE]; N],
    /// `(64, head_dim)`.
    pub(super) values: &'a [T],
    /// What is needed next: it is asked for little by little.
    pub(super) ahead: NeededLines,
    pub(super) slots: Range<usize>,
    pub(super) head_dim: usize,
    /// `(N, 2, head_dim)`.
    pub(super) sums: &'a mut [f32],
    pub(super) lanes: PhantomData<L>,
}

impl<L: Lanes, T: LaneNumber, const N: usize> Kernel for MixedPage<'_, L, T, N> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let whole = self.head_dim / LANES * LANES;
        let mut d = 0;
        while d < whole {
            d += match (whole - d) / LANES {
                4.. if const { side_by_side(L::SUMS, N) == 4 } => self.strips::<4>(d, whole),
                2.. if const { side_by_side(L::SUMS, N) >= 2 } => self.strips::<2>(d, whole),
                _ => self.strips::<1>(d, whole),
            };
        }
        // Dimensions that fill no register.
        for slot in self.slots.filter(|_| whole < self.head_dim) {
            for (n, weights) in self.weights.iter().enumerate() {
                let sums = &mut self.sums[(2 * n + slot % 2) * self.head_dim..];
                let value = &self.values[slot * self.head_dim..][whole..self.head_dim];
                add_scaled::<L, T>(&mut sums[whole..self.head_dim], value, weights[slot]);
            }
        }
    }
}

impl<L: Lanes, T: LaneNumber, const N: usize> MixedPage<'_, L, T, N> {
    /// `S` times sixteen dimensions from `d` on, of `whole`: those of even positions, then those of odd ones, so that
    /// the sums of more queries fit into the registers. Returns how many that are.
    #[inline(always)]
    fn strips<const S: usize>(&mut self, d: usize, whole: usize) -> usize {
        let width = S * LANES;
        let mut ahead = self.ahead.share(d..d + width, whole).in_steps(PAGE);
        let weights: [&[[f32; 2]]; N] = self.weights.map(|weights| weights.as_chunks().0);
        for parity in [0, 1] {
            // Of query n and strip s at [n][s].
            let mut sums = [[L::zero(); S]; N];
            let at = |n: usize, s: usize| (2 * n + parity) * self.head_dim + d + s * LANES;
            unrolled!(n in N => unrolled!(s in S => {
                sums[n][s] = L::load(numbers_mut(self.sums, at(n, s)));
            }));
            // Slots 2 i + parity that are among the slots.
            let pairs = (self.slots.start + 1 - parity) / 2..(self.slots.end + 1 - parity) / 2;
            for i in pairs {
                ahead.step::<L>();
                let value = &self.values[(2 * i + parity) * self.head_dim + d..][..width];
                let value: &[[T; LANES]] = &value.as_chunks().0[..S];
                unrolled!(s in S => {
                    let value: L = T::load(&value[s]);
                    unrolled!(n in N => {
                        sums[n][s] = sums[n][s].add_scaled(value, weights[n][i][parity]);
                    });
                });
            }
            unrolled!(n in N => unrolled!(s in S => {
                sums[n][s].store(numbers_mut(self.sums, at(n, s)));
            }));
        }
        width
    }
}

/// Adds `value` times `weight` to `sums`.
#[inline(always)]
pub(super) fn add_scaled<L: Lanes, T: LaneNumber>(sums: &mut [f32], value: &[T], weight: f32) {
    let (sums, last) = sums.as_chunks_mut::<LANES>();
    let (values, rest) = value.as_chunks::<LANES>();
    for (sums, values) in sums.iter_mut().zip(values) {
        let sum = L::load(sums).add_scaled(T::load(values), weight);
        sum.store(sums);
    }
    for (sum, value) in last.iter_mut().zip(rest) {
        *sum = weight.mul_add(value.to_f32(), *sum);
    }
}
