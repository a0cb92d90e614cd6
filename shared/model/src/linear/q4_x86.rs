//! The inner loop of [`super::q4`] in x86 vectors: the same integers, and the same roundings in the
//! same order, as the portable loop.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_load_si128, _mm_loadl_epi64, _mm_prefetch, _mm256_add_epi32,
    _mm256_add_ps, _mm256_and_si256, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_load_ps,
    _mm256_load_si256, _mm256_loadu_ps, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps,
    _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_setzero_si256, _mm256_srli_epi16, _mm256_storeu_ps, _mm256_sub_ps, _mm512_add_ps,
    _mm512_and_si512, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32, _mm512_dpbusd_epi32,
    _mm512_load_ps, _mm512_load_si512, _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_srli_epi16,
    _mm512_storeu_ps, _mm512_sub_ps,
};

use super::{
    blocked::{LINE, Sums, VECTORS},
    inputs::STEPS,
    q4::{Inputs, SUBS, WeightBlock},
};

/// Vectors of outputs, in halves of eight.
const HALVES: usize = 2 * VECTORS;
/// Lines of a block.
const BLOCK_LINES: usize = size_of::<WeightBlock>() / LINE;

/// AVX-512 VNNI: one instruction multiplies four inputs of sixteen outputs. Asks memory for `LINES` lines
/// from `ahead` on for each two that it reads.
///
/// # Safety
/// `weights` and `x` are of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
pub(super) unsafe fn dot_vnni<const ROWS: usize, const LINES: usize>(
    weights: &[WeightBlock],
    x: &[Inputs<ROWS>],
    results: &mut [Sums; ROWS],
    ahead: *const i8,
) {
    let low_halves = _mm512_set1_epi8(15);
    let mut totals = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    for row in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: 16 floats.
            totals[row][v] = unsafe { _mm512_loadu_ps(results[row][v].as_ptr()) };
        }
    }
    for b in 0..weights.len() {
        // SAFETY: both are of this length.
        let (weight, inputs) = unsafe { (weights.get_unchecked(b), x.get_unchecked(b)) };
        let ahead = ahead.wrapping_add(LINE * (LINES * BLOCK_LINES / 2) * b);
        for sub in 0..SUBS {
            let mut sums = [[_mm512_setzero_si512(); VECTORS]; ROWS];
            // Five steps of as many lines: a few more than the block has.
            let ask = |step: usize| {
                for line in 0..LINES {
                    let line = LINES * (5 * sub + step) + line;
                    // A hint, for any address.
                    _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(LINE * line));
                }
            };
            for step in 0..STEPS / 2 {
                ask(step);
                for v in 0..VECTORS {
                    // SAFETY: the array has 64 bytes, at a multiple of as many.
                    let both =
                        unsafe { _mm512_load_si512(weight.quants[sub][step][v].as_ptr().cast()) };
                    let low = _mm512_and_si512(both, low_halves);
                    let high = _mm512_and_si512(_mm512_srli_epi16::<4>(both), low_halves);
                    for row in 0..ROWS {
                        let quants = &inputs[sub][row].quants;
                        let sum = &mut sums[row][v];
                        *sum = _mm512_dpbusd_epi32(*sum, low, _mm512_set1_epi32(quants[step]));
                        let four = _mm512_set1_epi32(quants[step + STEPS / 2]);
                        *sum = _mm512_dpbusd_epi32(*sum, high, four);
                    }
                }
            }
            ask(STEPS / 2);
            for v in 0..VECTORS {
                // SAFETY: arrays of 16 bytes, at multiples of 16, and of 16 floats, at multiples of 64.
                let (scales, mins) = unsafe {
                    let widen = |bytes: &[u8; 16]| {
                        let bytes = _mm_load_si128(bytes.as_ptr().cast());
                        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
                    };
                    (
                        _mm512_mul_ps(
                            _mm512_load_ps(weight.scales[v].as_ptr()),
                            widen(&weight.sub_scales[sub][v]),
                        ),
                        _mm512_mul_ps(
                            _mm512_load_ps(weight.min_scales[v].as_ptr()),
                            widen(&weight.sub_mins[sub][v]),
                        ),
                    )
                };
                for row in 0..ROWS {
                    let input = &inputs[sub][row];
                    let scale = _mm512_mul_ps(scales, _mm512_set1_ps(input.scale));
                    let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[row][v]), scale);
                    let total = _mm512_add_ps(totals[row][v], product);
                    let min = _mm512_mul_ps(mins, _mm512_set1_ps(input.sum));
                    totals[row][v] = _mm512_sub_ps(total, min);
                }
            }
        }
    }
    for row in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: 16 floats.
            unsafe { _mm512_storeu_ps(results[row][v].as_mut_ptr(), totals[row][v]) };
        }
    }
}

/// AVX2: products of 4-bit with 8-bit numbers do not saturate in pairs. Two rows and eight outputs at a
/// time.
///
/// # Safety
/// `weights` and `x` are of one length.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dot_avx2<const ROWS: usize>(
    weights: &[WeightBlock],
    x: &[Inputs<ROWS>],
    results: &mut [Sums; ROWS],
) {
    for half in 0..HALVES {
        for first in (0..ROWS).step_by(2) {
            if first + 1 < ROWS {
                half_rows::<ROWS, 2>(weights, x, half, first, results);
            } else {
                half_rows::<ROWS, 1>(weights, x, half, first, results);
            }
        }
    }
}

/// Eight outputs for `COUNT` rows from `first` on.
#[target_feature(enable = "avx2")]
#[allow(clippy::needless_range_loop, reason = "rows index registers")]
fn half_rows<const ROWS: usize, const COUNT: usize>(
    weights: &[WeightBlock],
    x: &[Inputs<ROWS>],
    half: usize,
    first: usize,
    results: &mut [Sums; ROWS],
) {
    let low_halves = _mm256_set1_epi8(15);
    let ones = _mm256_set1_epi16(1);
    let mut totals = [_mm256_setzero_ps(); COUNT];
    for row in 0..COUNT {
        let result = &results[first + row].as_flattened()[8 * half..][..8];
        // SAFETY: 8 floats.
        totals[row] = unsafe { _mm256_loadu_ps(result.as_ptr()) };
    }
    for (weight, inputs) in weights.iter().zip(x) {
        for sub in 0..SUBS {
            let input = &inputs[sub][first..first + COUNT];
            let mut sums = [_mm256_setzero_si256(); COUNT];
            for step in 0..STEPS / 2 {
                let halves: *const __m256i = weight.quants[sub][step].as_ptr().cast();
                // SAFETY: the array has four times 32 bytes, at a multiple of 64.
                let both = unsafe { _mm256_load_si256(halves.add(half)) };
                let low = _mm256_and_si256(both, low_halves);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low_halves);
                for row in 0..COUNT {
                    let quants = &input[row].quants;
                    for (weights, four) in [(low, quants[step]), (high, quants[step + STEPS / 2])] {
                        let pairs = _mm256_maddubs_epi16(weights, _mm256_set1_epi32(four));
                        let product = _mm256_madd_epi16(pairs, ones);
                        sums[row] = _mm256_add_epi32(sums[row], product);
                    }
                }
            }
            // SAFETY: 8 of 32 bytes, and 8 of 32 floats at a multiple of 32 bytes.
            let (scales, mins) = unsafe {
                let widen = |bytes: &[[u8; 16]; VECTORS]| {
                    let bytes = _mm_loadl_epi64(bytes.as_flattened().as_ptr().add(8 * half).cast());
                    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
                };
                let floats = |floats: &[[f32; 16]; VECTORS]| {
                    _mm256_load_ps(floats.as_flattened().as_ptr().add(8 * half))
                };
                (
                    _mm256_mul_ps(floats(&weight.scales), widen(&weight.sub_scales[sub])),
                    _mm256_mul_ps(floats(&weight.min_scales), widen(&weight.sub_mins[sub])),
                )
            };
            for row in 0..COUNT {
                let scale = _mm256_mul_ps(scales, _mm256_set1_ps(input[row].scale));
                let product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[row]), scale);
                let total = _mm256_add_ps(totals[row], product);
                let min = _mm256_mul_ps(mins, _mm256_set1_ps(input[row].sum));
                totals[row] = _mm256_sub_ps(total, min);
            }
        }
    }
    for row in 0..COUNT {
        let result = &mut results[first + row].as_flattened_mut()[8 * half..][..8];
        // SAFETY: 8 floats.
        unsafe { _mm256_storeu_ps(result.as_mut_ptr(), totals[row]) };
    }
}
