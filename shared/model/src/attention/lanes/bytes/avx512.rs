//! Products of bytes with AVX-512 and VNNI.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{super::x86::Avx512, ByteLanes, HALF_BITS, InputBlock, LANES, PAGE, Quads};

// SAFETY of what follows: only functions compiled for the instruction set use the types, which run on
// CPUs that have it; the addresses are those of sixteen numbers, or of 64 bytes.

impl ByteLanes for Avx512 {
    type Sums = __m512i;
    /// Plus 128: one side of a product has no sign.
    type Keys = __m512i;

    const QUERIES: usize = 6;

    #[inline(always)]
    fn load_sums(sums: &[i32; LANES]) -> __m512i {
        unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) }
    }

    #[inline(always)]
    fn start(query: &InputBlock) -> __m512i {
        unsafe { _mm512_set1_epi32(query.offset) }
    }

    #[inline(always)]
    fn load_keys(keys: &Quads) -> __m512i {
        unsafe {
            let keys = _mm512_loadu_si512(keys.as_ptr().cast());
            _mm512_xor_si512(keys, _mm512_set1_epi8(-128))
        }
    }

    #[inline(always)]
    fn add_keys(sums: __m512i, keys: __m512i, query: i32) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sums, keys, _mm512_set1_epi32(query)) }
    }

    #[inline(always)]
    fn add_values(sums: __m512i, values: &Quads, halves: [u8; 4]) -> __m512i {
        unsafe {
            let values = _mm512_loadu_si512(values.as_ptr().cast());
            let halves = _mm512_set1_epi32(i32::from_le_bytes(halves));
            _mm512_dpbusd_epi32(sums, halves, values)
        }
    }

    #[inline(always)]
    fn joined(high: __m512i, low: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(_mm512_slli_epi32::<HALF_BITS>(high), low) }
    }

    #[inline(always)]
    fn numbers(sums: __m512i) -> Self {
        Self(unsafe { _mm512_cvtepi32_ps(sums) })
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        unsafe {
            let (own, other) = (_mm512_castps_si512(self.0), _mm512_castps_si512(other.0));
            Self(_mm512_castsi512_ps(_mm512_max_epu32(own, other)))
        }
    }

    #[inline(always)]
    fn store_halves(
        shares: &[[f32; LANES]; 4],
        factor: f32,
        high: &mut [u8; PAGE],
        low: &mut [u8; PAGE],
    ) {
        unsafe {
            let (mut highs, mut lows) = ([_mm512_setzero_si512(); 4], [_mm512_setzero_si512(); 4]);
            for i in 0..4 {
                let numbers = _mm512_loadu_ps(shares[i].as_ptr());
                let numbers = _mm512_mul_ps(numbers, _mm512_set1_ps(factor));
                let whole = _mm512_cvtps_epi32(numbers);
                highs[i] = _mm512_srli_epi32::<HALF_BITS>(whole);
                lows[i] = _mm512_and_si512(whole, _mm512_set1_epi32(127));
            }
            _mm512_storeu_si512(high.as_mut_ptr().cast(), narrowed(highs));
            _mm512_storeu_si512(low.as_mut_ptr().cast(), narrowed(lows));
        }
    }
}

/// The low bytes of 64 numbers below 128, in their order.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn narrowed([a, b, c, d]: [__m512i; 4]) -> __m512i {
    unsafe {
        let (first, second) = (_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
        // Four bytes of each of the four, in each quarter.
        let bytes = _mm512_packus_epi16(first, second);
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, bytes)
    }
}
