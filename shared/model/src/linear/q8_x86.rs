//! The inner loop of [`super::q8`] in x86 vectors: the same integers, and the same three roundings
//! a block, as the portable loop.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256, _mm256_cvtepi32_ps, _mm256_load_ps,
    _mm256_load_si256, _mm256_madd_epi16, _mm256_mul_ps, _mm256_set1_epi16, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi16, _mm256_srai_epi16, _mm256_srli_epi16,
    _mm256_storeu_ps, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_load_ps,
    _mm512_load_si512, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_storeu_ps,
};

use super::q8::{InputBlock, LANES, STEPS, TILE, WeightBlock};

/// AVX-512 VNNI: one instruction multiplies four inputs of sixteen outputs.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
pub(super) fn dot_vnni<const ROWS: usize>(
    weights: &[WeightBlock],
    x: [&[InputBlock]; ROWS],
    results: &mut [[f32; LANES]; TILE],
) {
    let mut totals = [_mm512_setzero_ps(); ROWS];
    for (b, weight) in weights.iter().enumerate() {
        let input = x.map(|row| &row[b]);
        let mut sums = input.map(|input| _mm512_set1_epi32(input.offset));
        for step in 0..STEPS {
            // SAFETY: the array has 64 bytes, and the struct is aligned to as many.
            let quants = unsafe { _mm512_load_si512(weight.quants[step].as_ptr().cast()) };
            for row in 0..ROWS {
                let four = _mm512_set1_epi32(input[row].quants[step]);
                sums[row] = _mm512_dpbusd_epi32(sums[row], quants, four);
            }
        }
        // SAFETY: 16 floats at a multiple of 64 bytes.
        let scales = unsafe { _mm512_load_ps(weight.scales.as_ptr()) };
        for row in 0..ROWS {
            let scale = _mm512_mul_ps(scales, _mm512_set1_ps(input[row].scale));
            let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[row]), scale);
            totals[row] = _mm512_add_ps(totals[row], product);
        }
    }
    for row in 0..ROWS {
        // SAFETY: an array of 16 floats.
        unsafe { _mm512_storeu_ps(results[row].as_mut_ptr(), totals[row]) };
    }
}

/// AVX2: bytes are widened in place, the even and the odd of each pair apart, because the byte
/// product of this level saturates.
#[target_feature(enable = "avx2")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and halves index registers"
)]
pub(super) fn dot_avx2<const ROWS: usize>(
    weights: &[WeightBlock],
    x: [&[InputBlock]; ROWS],
    results: &mut [[f32; LANES]; TILE],
) {
    let low_bytes = _mm256_set1_epi16(0xff);
    let mut totals = [[_mm256_setzero_ps(); 2]; ROWS];
    for (b, weight) in weights.iter().enumerate() {
        let input = x.map(|row| &row[b]);
        let mut sums = input.map(|input| [_mm256_set1_epi32(input.offset); 2]);
        for step in 0..STEPS {
            let halves: *const __m256i = weight.quants[step].as_ptr().cast();
            for half in 0..2 {
                // SAFETY: the array has two times 32 bytes, and the struct is aligned to 64.
                let quants = unsafe { _mm256_load_si256(halves.add(half)) };
                let even = _mm256_and_si256(quants, low_bytes);
                let odd = _mm256_srli_epi16::<8>(quants);
                for row in 0..ROWS {
                    let four = _mm256_set1_epi32(input[row].quants[step]);
                    let x_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(four));
                    let x_odd = _mm256_srai_epi16::<8>(four);
                    let product = _mm256_add_epi32(
                        _mm256_madd_epi16(even, x_even),
                        _mm256_madd_epi16(odd, x_odd),
                    );
                    sums[row][half] = _mm256_add_epi32(sums[row][half], product);
                }
            }
        }
        for half in 0..2 {
            // SAFETY: 8 of 16 floats, at a multiple of 32 bytes.
            let scales = unsafe { _mm256_load_ps(weight.scales.as_ptr().add(8 * half)) };
            for row in 0..ROWS {
                let scale = _mm256_mul_ps(scales, _mm256_set1_ps(input[row].scale));
                let product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[row][half]), scale);
                totals[row][half] = _mm256_add_ps(totals[row][half], product);
            }
        }
    }
    for row in 0..ROWS {
        for half in 0..2 {
            // SAFETY: 8 of an array of 16 floats.
            unsafe {
                _mm256_storeu_ps(results[row].as_mut_ptr().add(8 * half), totals[row][half]);
            }
        }
    }
}
