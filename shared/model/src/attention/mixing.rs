//! From weights and values to outputs.

use std::ops::Range;

use super::{
    lanes::{LaneNumber, Lanes},
    scores::numbers_mut,
};
use crate::cache::LANES;

/// Most sums at a time, `N * S`, over even positions and over odd ones.
const MOST: usize = 8;

/// Adds the values of the slots `slots` of a page, `(64, head_dim)`, times the weights of `N` queries, to
/// their sums, each `(2, head_dim)`: over even positions, and over odd ones. The slots of a page are even
/// where its positions are; the weights are those of the page.
#[inline(always)]
pub(super) fn mix<L: Lanes, T: LaneNumber, const N: usize>(
    weights: [&[f32]; N],
    values: &[T],
    slots: Range<usize>,
    head_dim: usize,
    sums: &mut [f32],
) {
    let whole = head_dim / LANES * LANES;
    let mut d = 0;
    while d < whole {
        let strips = L::STRIPS.min((whole - d) / LANES);
        let then = d + strips * LANES;
        if const { L::STRIPS > 1 } && strips == 2 {
            strip::<L, T, N, 2>(weights, values, slots.clone(), head_dim, d, sums);
        } else {
            strip::<L, T, N, 1>(weights, values, slots.clone(), head_dim, d, sums);
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

/// [`mix`] for `S` times sixteen dimensions from `d` on.
#[inline(always)]
fn strip<L: Lanes, T: LaneNumber, const N: usize, const S: usize>(
    weights: [&[f32]; N],
    values: &[T],
    slots: Range<usize>,
    head_dim: usize,
    d: usize,
    sums: &mut [f32],
) {
    // Sum i is that of query i / S and strip i % S.
    let mut even = [L::zero(); MOST];
    let mut odd = [L::zero(); MOST];
    unrolled!(i in N * S => {
        let at = 2 * (i / S) * head_dim + d + i % S * LANES;
        even[i] = L::load(numbers(sums, at));
        odd[i] = L::load(numbers(sums, at + head_dim));
    });
    // Strip `s` of the value that stands at `at`.
    let value =
        |at: usize, s: usize| -> L { T::load(numbers(values, at * head_dim + d + s * LANES)) };
    let Range { mut start, end } = slots;
    if start % 2 == 1 && start < end {
        unrolled!(i in N * S => {
            odd[i] = odd[i].add_scaled(value(start, i % S), weights[i / S][start]);
        });
        start += 1;
    }
    let slots = end.saturating_sub(start);
    let pairs = &values[start * head_dim..][..slots / 2 * 2 * head_dim];
    let paired: [&[[f32; 2]]; N] = weights.map(|weights| weights[start..].as_chunks().0);
    for (i, pair) in pairs.chunks_exact(2 * head_dim).enumerate() {
        unrolled!(s in S => {
            let at = d + s * LANES;
            let values: [L; 2] = [
                T::load(numbers(pair, at)),
                T::load(numbers(pair, at + head_dim)),
            ];
            unrolled!(n in N => {
                let i_sum = n * S + s;
                even[i_sum] = even[i_sum].add_scaled(values[0], paired[n][i][0]);
                odd[i_sum] = odd[i_sum].add_scaled(values[1], paired[n][i][1]);
            });
        });
    }
    if slots % 2 == 1 {
        unrolled!(i in N * S => {
            even[i] = even[i].add_scaled(value(end - 1, i % S), weights[i / S][end - 1]);
        });
    }
    unrolled!(i in N * S => {
        let at = 2 * (i / S) * head_dim + d + i % S * LANES;
        even[i].store(numbers_mut(sums, at));
        odd[i].store(numbers_mut(sums, at + head_dim));
    });
}

/// Sixteen numbers of `numbers` from `at` on.
#[inline(always)]
fn numbers<T>(numbers: &[T], at: usize) -> &[T; LANES] {
    numbers[at..].first_chunk().expect("sixteen numbers")
}
