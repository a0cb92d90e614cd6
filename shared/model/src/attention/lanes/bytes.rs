//! Sums of products of bytes, sixteen side by side: whole numbers, so exact, in whatever order they are added.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::Lanes;
use crate::{
    cache::{LANES, PAGE, Quads},
    linear::InputBlock,
};

/// Bits of the lower half of a share, and of the higher.
const HALF_BITS: u32 = 7;
/// The largest share: 14 bits, of which no product of a half and a value is more than two bytes hold, nor the sum of
/// two of them (AVX2 has no other).
pub(in super::super) const LARGEST_SHARE: f32 = ((1 << (2 * HALF_BITS)) - 1) as f32;
/// Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
const ROUNDING: f32 = 12_582_912.0;

/// The share of which these are the halves.
#[inline(always)]
pub(in super::super) fn join(high: u8, low: u8) -> i32 {
    i32::from(high) << HALF_BITS | i32::from(low)
}

/// Lanes that multiply bytes.
pub(in super::super) trait ByteLanes: Lanes {
    /// Sixteen sums.
    type Sums: Copy;
    /// Keys, as they are multiplied.
    type Keys: Copy;

    /// Most queries that go on side by side.
    const QUERIES: usize;

    /// These sums.
    fn load_sums(sums: &[i32; LANES]) -> Self::Sums;
    /// What products with keys are added to: what they come to is the product of the two.
    fn start(query: &InputBlock) -> Self::Sums;
    /// These keys.
    fn load_keys(keys: &Quads) -> Self::Keys;
    /// With products of `keys` and four signed bytes of a query added.
    fn add_keys(sums: Self::Sums, keys: Self::Keys, query: i32) -> Self::Sums;
    /// With products of `values` and the halves of four slots' shares added, each below 128.
    fn add_values(sums: Self::Sums, values: &Quads, halves: [u8; 4]) -> Self::Sums;
    /// The sums that `high` and `low` halves of shares have come to together.
    fn joined(high: Self::Sums, low: Self::Sums) -> Self::Sums;
    /// As numbers, rounded once.
    fn numbers(sums: Self::Sums) -> Self;
    /// The larger, lane by lane, of numbers that are not negative; what is no number is larger than any.
    fn larger(self, other: Self) -> Self;
    /// Writes the whole numbers nearest to a page's `shares` times `factor`, up to [`LARGEST_SHARE`], as halves.
    fn store_halves(
        shares: &[[f32; LANES]; 4],
        factor: f32,
        high: &mut [u8; PAGE],
        low: &mut [u8; PAGE],
    );
}

impl ByteLanes for [f32; LANES] {
    type Sums = [i32; LANES];
    type Keys = Quads;

    const QUERIES: usize = 2;

    #[inline(always)]
    fn load_sums(sums: &[i32; LANES]) -> [i32; LANES] {
        *sums
    }

    #[inline(always)]
    fn start(_query: &InputBlock) -> [i32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    fn load_keys(keys: &Quads) -> Quads {
        *keys
    }

    #[inline(always)]
    fn add_keys(mut sums: [i32; LANES], keys: Quads, query: i32) -> [i32; LANES] {
        let query = query.to_le_bytes().map(u8::cast_signed);
        for (sum, key) in sums.iter_mut().zip(keys) {
            for i in 0..4 {
                *sum += i32::from(key[i]) * i32::from(query[i]);
            }
        }
        sums
    }

    #[inline(always)]
    fn add_values(mut sums: [i32; LANES], values: &Quads, halves: [u8; 4]) -> [i32; LANES] {
        for (sum, value) in sums.iter_mut().zip(values) {
            for i in 0..4 {
                *sum += i32::from(value[i]) * i32::from(halves[i]);
            }
        }
        sums
    }

    #[inline(always)]
    fn joined(high: [i32; LANES], mut low: [i32; LANES]) -> [i32; LANES] {
        for (low, high) in low.iter_mut().zip(high) {
            *low += high << HALF_BITS;
        }
        low
    }

    #[inline(always)]
    fn numbers(sums: [i32; LANES]) -> Self {
        sums.map(|sum| sum as f32)
    }

    #[inline(always)]
    fn larger(mut self, other: Self) -> Self {
        for (number, other) in self.iter_mut().zip(other) {
            *number = f32::from_bits(number.to_bits().max(other.to_bits()));
        }
        self
    }

    #[inline(always)]
    fn store_halves(
        shares: &[[f32; LANES]; 4],
        factor: f32,
        high: &mut [u8; PAGE],
        low: &mut [u8; PAGE],
    ) {
        let shares = shares.as_flattened();
        for ((number, high), low) in shares.iter().zip(high).zip(low) {
            let share = (number * factor + ROUNDING).to_bits();
            *high = (share >> HALF_BITS) as u8 & 127;
            *low = share as u8 & 127;
        }
    }
}
