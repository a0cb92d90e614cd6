//! The inner loop of [`super::q8`] in x86 vectors: the same integers, and the same three roundings
//! a block, as the portable loop.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_load_si128, _mm_prefetch, _mm256_add_epi32, _mm256_add_ps,
    _mm256_and_si256, _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_load_si256, _mm256_loadu_ps,
    _mm256_madd_epi16, _mm256_mul_ps, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_slli_epi16, _mm256_srai_epi16, _mm256_srli_epi16, _mm256_storeu_ps,
    _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_cvtph_ps, _mm512_dpbusd_epi32, _mm512_load_si512,
    _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_storeu_ps,
};

use super::{
    blocked::{LINE, Sums, VECTORS},
    inputs::{InputBlock, STEPS},
    q8::WeightBlock,
};

/// Vectors of outputs, in halves of eight.
const HALVES: usize = 2 * VECTORS;

/// AVX-512 VNNI: one instruction multiplies four inputs of sixteen outputs. Asks memory for `LINES` lines
/// from `ahead` on for each two that it reads, one between others: a bunch of requests would delay the reads.
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
    x: &[[InputBlock; ROWS]],
    results: &mut [Sums; ROWS],
    ahead: *const i8,
) {
    let mut totals = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    for row in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: 16 floats.
            totals[row][v] = unsafe { _mm512_loadu_ps(results[row][v].as_ptr()) };
        }
    }
    for b in 0..weights.len() {
        // SAFETY: both are of this length.
        let (weight, input) = unsafe { (weights.get_unchecked(b), x.get_unchecked(b)) };
        let mut sums = [[_mm512_setzero_si512(); VECTORS]; ROWS];
        for row in 0..ROWS {
            sums[row] = [_mm512_set1_epi32(input[row].offset); VECTORS];
        }
        // A block is two lines a step and one of scales; half as many are rounded up.
        let ask = |step: usize, lines: usize| {
            let first = b * (LINES * STEPS + 1) + LINES * step;
            for line in 0..lines {
                // A hint, for any address.
                _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(LINE * (first + line)));
            }
        };
        for step in 0..STEPS {
            ask(step, LINES);
            let quants: [_; VECTORS] = std::array::from_fn(|v| {
                // SAFETY: the array has 64 bytes, and the struct is aligned to as many.
                unsafe { _mm512_load_si512(weight.quants[step][v].as_ptr().cast()) }
            });
            for row in 0..ROWS {
                let four = _mm512_set1_epi32(input[row].quants[step]);
                for v in 0..VECTORS {
                    sums[row][v] = _mm512_dpbusd_epi32(sums[row][v], quants[v], four);
                }
            }
        }
        ask(STEPS, LINES.min(1));
        for v in 0..VECTORS {
            // SAFETY: 16 halves at a multiple of 32 bytes.
            let scales = unsafe { _mm256_load_si256(weight.scales[v].as_ptr().cast()) };
            let scales = _mm512_cvtph_ps(scales);
            for row in 0..ROWS {
                let scale = _mm512_mul_ps(scales, _mm512_set1_ps(input[row].scale));
                let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[row][v]), scale);
                totals[row][v] = _mm512_add_ps(totals[row][v], product);
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

/// AVX2: bytes are widened in place, the even and the odd of each pair apart, because the byte
/// product of this level saturates. Two rows and eight outputs at a time: sixteen registers hold no more.
///
/// # Safety
/// `weights` and `x` are of one length.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn dot_avx2<const ROWS: usize>(
    weights: &[WeightBlock],
    x: &[[InputBlock; ROWS]],
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
#[target_feature(enable = "avx2,f16c")]
#[allow(clippy::needless_range_loop, reason = "rows index registers")]
fn half_rows<const ROWS: usize, const COUNT: usize>(
    weights: &[WeightBlock],
    x: &[[InputBlock; ROWS]],
    half: usize,
    first: usize,
    results: &mut [Sums; ROWS],
) {
    let low_bytes = _mm256_set1_epi16(0xff);
    let mut totals = [_mm256_setzero_ps(); COUNT];
    for row in 0..COUNT {
        let result = &results[first + row].as_flattened()[8 * half..][..8];
        // SAFETY: 8 floats.
        totals[row] = unsafe { _mm256_loadu_ps(result.as_ptr()) };
    }
    for (weight, inputs) in weights.iter().zip(x) {
        let input: [&InputBlock; COUNT] = std::array::from_fn(|row| &inputs[first + row]);
        let mut sums = input.map(|input| _mm256_set1_epi32(input.offset));
        for step in 0..STEPS {
            let halves: *const __m256i = weight.quants[step].as_ptr().cast();
            // SAFETY: the array has four times 32 bytes, and the struct is aligned to 64.
            let quants = unsafe { _mm256_load_si256(halves.add(half)) };
            let even = _mm256_and_si256(quants, low_bytes);
            let odd = _mm256_srli_epi16::<8>(quants);
            for row in 0..COUNT {
                let four = _mm256_set1_epi32(input[row].quants[step]);
                let x_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(four));
                let x_odd = _mm256_srai_epi16::<8>(four);
                let product = _mm256_add_epi32(
                    _mm256_madd_epi16(even, x_even),
                    _mm256_madd_epi16(odd, x_odd),
                );
                sums[row] = _mm256_add_epi32(sums[row], product);
            }
        }
        // SAFETY: 8 of 32 halves, at a multiple of 16 bytes.
        let scales =
            unsafe { _mm_load_si128(weight.scales.as_flattened().as_ptr().add(8 * half).cast()) };
        let scales = _mm256_cvtph_ps(scales);
        for row in 0..COUNT {
            let scale = _mm256_mul_ps(scales, _mm256_set1_ps(input[row].scale));
            let product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[row]), scale);
            totals[row] = _mm256_add_ps(totals[row], product);
        }
    }
    for row in 0..COUNT {
        let result = &mut results[first + row].as_flattened_mut()[8 * half..][..8];
        // SAFETY: 8 floats.
        unsafe { _mm256_storeu_ps(result.as_mut_ptr(), totals[row]) };
    }
}
