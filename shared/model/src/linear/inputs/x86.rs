//! [`super`] in x86 vectors: the same roundings as the portable loop, so the same bits.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{BLOCK, InputBlock, ROUNDING, STEPS, scales};

/// Quantises one block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn quantize_avx512(values: &[f32; BLOCK]) -> InputBlock {
    // SAFETY: two times 16 of 32 floats.
    let (first, second) = unsafe {
        let start = values.as_ptr();
        (_mm512_loadu_ps(start), _mm512_loadu_ps(start.add(16)))
    };
    let largest = _mm512_reduce_max_epu32(_mm512_max_epu32(
        _mm512_castps_si512(_mm512_abs_ps(first)),
        _mm512_castps_si512(_mm512_abs_ps(second)),
    ));
    let (scale, inverse) = scales(largest);
    if scale.is_nan() {
        return InputBlock::new(scale, [0; STEPS], 0);
    }
    let (inverse, rounding) = (_mm512_set1_ps(inverse), _mm512_set1_ps(ROUNDING));
    let none = _mm512_castps_si512(rounding);
    let first = _mm512_add_ps(_mm512_mul_ps(first, inverse), rounding);
    let first = _mm512_sub_epi32(_mm512_castps_si512(first), none);
    let second = _mm512_add_ps(_mm512_mul_ps(second, inverse), rounding);
    let second = _mm512_sub_epi32(_mm512_castps_si512(second), none);
    let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(first, second));
    let mut quants = [0; STEPS];
    let halves: *mut std::arch::x86_64::__m128i = quants.as_mut_ptr().cast();
    // SAFETY: two times 16 of 32 bytes.
    unsafe {
        _mm_storeu_si128(halves, _mm512_cvtepi32_epi8(first));
        _mm_storeu_si128(halves.add(1), _mm512_cvtepi32_epi8(second));
    }
    InputBlock::new(scale, quants, sum)
}
