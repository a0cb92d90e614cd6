//! From weights and values to outputs.

use std::{marker::PhantomData, ops::Range};

use speculation::simd::Kernel;

use super::super::{
    ahead::NeededLines,
    lanes::{LaneNumber, Lanes},
    scores::numbers_mut,
};
use crate::cache::{LANES, PAGE};

/// Adds the values of the slots `slots` of a page, `(64, head_dim)`, times the weights of `N` queries, to
/// their sums, each `(2, head_dim)`: over even positions, and over odd ones. The slots of a page are even
/// where its positions are; the weights are those of the page. `ahead` is what is needed next: it is asked
/// for little by little.
#[inline(always)]
pub(super) fn mix<L: Lanes, T: LaneNumber, const N: usize>(
    weights: [&[f32]; N],
    (values, ahead): (&[T], NeededLines),
    slots: Range<usize>,
    head_dim: usize,
    sums: &mut [f32],
) {
    let whole = head_dim / LANES * LANES;
    let mut d = 0;
    while d < whole {
        let strips = match (whole - d) / LANES {
            4.. if const { 8 * N <= L::SUMS } => 4,
            2.. if const { 4 * N <= L::SUMS } => 2,
            _ => 1,
        };
        let then = d + strips * LANES;
        let strip = Strip {
            weights,
            values,
            ahead: ahead.share(d..then, whole),
            slots: slots.clone(),
            head_dim,
            d,
            sums: &mut *sums,
            lanes: PhantomData::<L>,
        };
        match strips {
            4 if const { 8 * N <= L::SUMS } => L::run(Strips::<_, 4>(strip)),
            2 if const { 4 * N <= L::SUMS } => L::run(Strips::<_, 2>(strip)),
            _ => L::run(Strips::<_, 1>(strip)),
        }
        d = then;
    }
    // Dimensions that fill no register.
    for slot in slots.filter(|_| whole < head_dim) {
        for n in 0..N {
            let sums = &mut sums[(2 * n + slot % 2) * head_dim..][whole..head_dim];
            let value = &values[slot * head_dim..][whole..head_dim];
            add_scaled::<L, T>(sums, value, weights[n][slot]);
        }
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

/// What [`mix`] is given, for the dimensions from `d` on.
struct Strip<'a, L, T, const N: usize> {
    weights: [&'a [f32]; N],
    values: &'a [T],
    ahead: NeededLines,
    slots: Range<usize>,
    head_dim: usize,
    d: usize,
    sums: &'a mut [f32],
    lanes: PhantomData<L>,
}

/// `S` times sixteen of these dimensions.
struct Strips<P, const S: usize>(P);

impl<L: Lanes, T: LaneNumber, const N: usize, const S: usize> Kernel
    for Strips<Strip<'_, L, T, N>, S>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Strip {
            weights,
            values,
            ahead,
            slots,
            head_dim,
            d,
            sums,
            ..
        } = self.0;
        // Of query n and strip s at [n][s].
        let mut even = [[L::zero(); S]; N];
        let mut odd = [[L::zero(); S]; N];
        unrolled!(n in N => unrolled!(s in S => {
            let at = 2 * n * head_dim + d + s * LANES;
            even[n][s] = L::load(numbers(sums, at));
            odd[n][s] = L::load(numbers(sums, at + head_dim));
        }));
        // Strip `s` of the value that stands at `at`.
        let value =
            |at: usize, s: usize| -> L { T::load(numbers(values, at * head_dim + d + s * LANES)) };
        let Range { mut start, end } = slots;
        if start % 2 == 1 && start < end {
            unrolled!(n in N => unrolled!(s in S => {
                odd[n][s] = odd[n][s].add_scaled(value(start, s), weights[n][start]);
            }));
            start += 1;
        }
        let pairs = start / 2..(end / 2).min(PAGE / 2);
        let weights_of_pairs: [&[[f32; 2]; PAGE / 2]; N] =
            weights.map(|weights| weights.as_chunks().0.first_chunk().expect("a page's"));
        let mut ahead = ahead.in_steps(PAGE / 2);
        for i in pairs {
            ahead.step::<L>();
            let pair = &values[2 * i * head_dim..][..2 * head_dim];
            let pair: [&[[T; LANES]]; 2] = [&pair[d..], &pair[head_dim + d..]]
                .map(|value| &value[..S * LANES].as_chunks().0[..S]);
            unrolled!(s in S => {
                let (first, second): (L, L) = (T::load(&pair[0][s]), T::load(&pair[1][s]));
                unrolled!(n in N => {
                    even[n][s] = even[n][s].add_scaled(first, weights_of_pairs[n][i][0]);
                    odd[n][s] = odd[n][s].add_scaled(second, weights_of_pairs[n][i][1]);
                });
            });
        }
        if start < end && end % 2 == 1 {
            unrolled!(n in N => unrolled!(s in S => {
                even[n][s] = even[n][s].add_scaled(value(end - 1, s), weights[n][end - 1]);
            }));
        }
        unrolled!(n in N => unrolled!(s in S => {
            let at = 2 * n * head_dim + d + s * LANES;
            even[n][s].store(numbers_mut(sums, at));
            odd[n][s].store(numbers_mut(sums, at + head_dim));
        }));
    }
}

/// Sixteen numbers of `numbers` from `at` on.
#[inline(always)]
fn numbers<T>(numbers: &[T], at: usize) -> &[T; LANES] {
    numbers[at..].first_chunk().expect("sixteen numbers")
}
