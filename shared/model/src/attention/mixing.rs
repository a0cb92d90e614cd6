//! From weights and values to outputs.

use std::ops::Range;

use super::{lanes::Lanes, scores::numbers_mut};
use crate::cache::{LANES, PAGE};

/// Adds the values of the slots `slots` of a page, `(64, head_dim)`, times the weights of `N` queries, to
/// their sums, each `(2, head_dim)`: over even positions, and over odd ones. The slots of a page are even
/// where its positions are; the weights are those of the page. Asks memory for as much as it reads, from
/// `ahead` on.
#[inline(always)]
pub(super) fn mix<L: Lanes, const N: usize>(
    weights: [&[f32]; N],
    values: &[f32],
    slots: Range<usize>,
    head_dim: usize,
    sums: &mut [f32],
    ahead: *const f32,
) {
    let whole = head_dim / LANES * LANES;
    for d in (0..whole).step_by(LANES) {
        let ahead = ahead.wrapping_add(d * PAGE);
        strip::<L, N>(weights, values, slots.clone(), head_dim, d, sums, ahead);
    }
    // Dimensions that fill no register.
    for slot in slots.filter(|_| whole < head_dim) {
        for n in 0..N {
            let sums = &mut sums[(2 * n + slot % 2) * head_dim..][whole..head_dim];
            let value = &values[slot * head_dim..][whole..head_dim];
            for (sum, value) in sums.iter_mut().zip(value) {
                *sum += weights[n][slot] * value;
            }
        }
    }
}

/// The same for sixteen dimensions from `d` on.
#[inline(always)]
fn strip<L: Lanes, const N: usize>(
    weights: [&[f32]; N],
    values: &[f32],
    slots: Range<usize>,
    head_dim: usize,
    d: usize,
    sums: &mut [f32],
    ahead: *const f32,
) {
    let mut even = [L::zero(); 4];
    let mut odd = [L::zero(); 4];
    unrolled!(n in N => {
        even[n] = L::load(numbers(sums, 2 * n * head_dim + d));
        odd[n] = L::load(numbers(sums, (2 * n + 1) * head_dim + d));
    });
    let Range { mut start, end } = slots;
    if start % 2 == 1 && start < end {
        let value = numbers(values, start * head_dim + d);
        unrolled!(n in N => odd[n] = odd[n].add_scaled(value, weights[n][start]));
        start += 1;
    }
    let slots = end.saturating_sub(start);
    let pairs = &values[start * head_dim..][..slots / 2 * 2 * head_dim];
    let paired: [&[[f32; 2]]; N] = weights.map(|weights| weights[start..].as_chunks().0);
    for (i, pair) in pairs.chunks_exact(2 * head_dim).enumerate() {
        L::ask(ahead, start + 2 * i);
        L::ask(ahead, start + 2 * i + 1);
        let (first, second) = (numbers(pair, d), numbers(pair, head_dim + d));
        unrolled!(n in N => {
            even[n] = even[n].add_scaled(first, paired[n][i][0]);
            odd[n] = odd[n].add_scaled(second, paired[n][i][1]);
        });
    }
    if slots % 2 == 1 {
        let value = numbers(values, (end - 1) * head_dim + d);
        unrolled!(n in N => even[n] = even[n].add_scaled(value, weights[n][end - 1]));
    }
    unrolled!(n in N => {
        even[n].store(numbers_mut(sums, 2 * n * head_dim + d));
        odd[n].store(numbers_mut(sums, (2 * n + 1) * head_dim + d));
    });
}

/// Sixteen numbers of `numbers` from `at` on.
#[inline(always)]
fn numbers(numbers: &[f32], at: usize) -> &[f32; LANES] {
    numbers[at..].first_chunk().expect("sixteen numbers")
}
