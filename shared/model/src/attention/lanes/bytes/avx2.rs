//! Products of bytes with AVX2.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{
    super::{Lanes as _, x86::Avx2},
    ByteLanes, HALF_BITS, InputBlock, LANES, PAGE, Quads,
};

// SAFETY of what follows: only functions compiled for the instruction set use the types, which run on
// CPUs that have it; the addresses are those of sixteen numbers, or of 64 bytes.

/// Adds the products of the bytes of `unsigned`, up to 127, and of `signed`, four by four.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn add_avx2(sums: __m256i, unsigned: __m256i, signed: __m256i) -> __m256i {
    unsafe {
        let pairs = _mm256_maddubs_epi16(unsigned, signed);
        _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
}

/// Both halves of 64 bytes.
#[inline(always)]
fn halves_of(quads: &Quads) -> [*const __m256i; 2] {
    let (first, second) = quads.split_at(LANES / 2);
    [first.as_ptr().cast(), second.as_ptr().cast()]
}

impl ByteLanes for Avx2 {
    type Sums = [__m256i; 2];
    type Keys = [__m256i; 2];

    const QUERIES: usize = 2;

    #[inline(always)]
    fn load_sums(sums: &[i32; LANES]) -> [__m256i; 2] {
        let (first, second) = sums.split_at(LANES / 2);
        unsafe {
            [
                _mm256_loadu_si256(first.as_ptr().cast()),
                _mm256_loadu_si256(second.as_ptr().cast()),
            ]
        }
    }

    #[inline(always)]
    fn start(_query: &InputBlock) -> [__m256i; 2] {
        [unsafe { _mm256_setzero_si256() }; 2]
    }

    #[inline(always)]
    fn load_keys(keys: &Quads) -> [__m256i; 2] {
        let [first, second] = halves_of(keys);
        unsafe { [_mm256_loadu_si256(first), _mm256_loadu_si256(second)] }
    }

    #[inline(always)]
    fn add_keys(mut sums: [__m256i; 2], keys: [__m256i; 2], query: i32) -> [__m256i; 2] {
        for (sums, keys) in sums.iter_mut().zip(keys) {
            unsafe {
                // One side of a product has no sign: the other has that of both.
                let query = _mm256_sign_epi8(_mm256_set1_epi32(query), keys);
                *sums = add_avx2(*sums, _mm256_abs_epi8(keys), query);
            }
        }
        sums
    }

    #[inline(always)]
    fn add_values(mut sums: [__m256i; 2], values: &Quads, halves: [u8; 4]) -> [__m256i; 2] {
        for (sums, values) in sums.iter_mut().zip(halves_of(values)) {
            unsafe {
                let halves = _mm256_set1_epi32(i32::from_le_bytes(halves));
                *sums = add_avx2(*sums, halves, _mm256_loadu_si256(values));
            }
        }
        sums
    }

    #[inline(always)]
    fn joined(high: [__m256i; 2], mut low: [__m256i; 2]) -> [__m256i; 2] {
        for (low, high) in low.iter_mut().zip(high) {
            unsafe {
                let high = _mm256_slli_epi32::<{ HALF_BITS as i32 }>(high);
                *low = _mm256_add_epi32(high, *low);
            }
        }
        low
    }

    #[inline(always)]
    fn numbers(sums: [__m256i; 2]) -> Self {
        unsafe { Self(_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])) }
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        unsafe { Self(larger(self.0, other.0), larger(self.1, other.1)) }
    }

    #[inline(always)]
    fn store_halves(
        shares: &[[f32; LANES]; 4],
        factor: f32,
        high: &mut [u8; PAGE],
        low: &mut [u8; PAGE],
    ) {
        let halves = high.as_chunks_mut().0.iter_mut().zip(low.as_chunks_mut().0);
        for (shares, (high, low)) in shares.iter().zip(halves) {
            let shares = Self::load(shares).scaled(factor);
            unsafe {
                let first = _mm256_cvtps_epi32(shares.0);
                let second = _mm256_cvtps_epi32(shares.1);
                let mask = _mm256_set1_epi32(127);
                store_bytes(
                    _mm256_srli_epi32::<{ HALF_BITS as i32 }>(first),
                    _mm256_srli_epi32::<{ HALF_BITS as i32 }>(second),
                    high,
                );
                store_bytes(
                    _mm256_and_si256(first, mask),
                    _mm256_and_si256(second, mask),
                    low,
                );
            }
        }
    }
}

/// As [`ByteLanes::larger`].
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn larger(a: __m256, b: __m256) -> __m256 {
    unsafe {
        let (a, b) = (_mm256_castps_si256(a), _mm256_castps_si256(b));
        _mm256_castsi256_ps(_mm256_max_epu32(a, b))
    }
}

/// Writes the low bytes of numbers below 128.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn store_bytes(first: __m256i, second: __m256i, to: &mut [u8; LANES]) {
    unsafe {
        let first = _mm_packs_epi32(
            _mm256_castsi256_si128(first),
            _mm256_extracti128_si256::<1>(first),
        );
        let second = _mm_packs_epi32(
            _mm256_castsi256_si128(second),
            _mm256_extracti128_si256::<1>(second),
        );
        _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_packus_epi16(first, second));
    }
}
