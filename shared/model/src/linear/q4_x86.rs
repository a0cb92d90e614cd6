//! The inner loop of [`super::q4`] in x86 vectors: the same integers, and the same roundings in the
//! same order, as the portable loop.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{
    block::{OutputSums, VECTORS, Wide},
    inputs::{InputBlock, STEPS},
    q4::{Q4Block, Q4Inputs, SUBS},
    slab::LINE,
    x86::{ask, load, store},
};

/// Lines of a block.
const BLOCK_LINES: usize = size_of::<Q4Block>() / LINE;

impl Wide for Q4Block {
    /// AVX-512 VNNI: one instruction multiplies four inputs of sixteen outputs. More than six rows' sums leave no
    /// registers for what they are made of: then sixteen outputs go first.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn dot_avx512<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: &[Q4Inputs<ROWS>],
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    ) {
        let half = ahead.wrapping_add(size_of_val(weights) / 2);
        // SAFETY: the caller's promise.
        unsafe {
            match LINES {
                _ if ROWS <= 6 => {
                    some_outputs::<ROWS, 0, VECTORS, LINES>(weights, x, results, ahead);
                }
                0 => {
                    some_outputs::<ROWS, 0, 1, 0>(weights, x, results, ahead);
                    some_outputs::<ROWS, 1, 1, 0>(weights, x, results, ahead);
                }
                1 => {
                    some_outputs::<ROWS, 0, 1, 1>(weights, x, results, ahead);
                    some_outputs::<ROWS, 1, 1, 0>(weights, x, results, ahead);
                }
                // Each asks for a half of what there is to ask for.
                _ => {
                    some_outputs::<ROWS, 0, 1, 1>(weights, x, results, ahead);
                    some_outputs::<ROWS, 1, 1, 1>(weights, x, results, half);
                }
            }
        }
    }

    /// AVX2: sixteen outputs and up to three rows at a time, in its sixteen registers, sub-block after sub-block.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn dot_avx2<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: &[Q4Inputs<ROWS>],
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    ) {
        let steps = std::hint::black_box(STEPS / 2);
        for (b, (weight, inputs)) in weights.iter().zip(x).enumerate() {
            let ahead = ahead.wrapping_add(LINE * (LINES * BLOCK_LINES / 2) * b);
            for (sub, inputs) in inputs.iter().enumerate() {
                for vector in 0..VECTORS {
                    let asks = vector < LINES;
                    let ahead = ahead.wrapping_add(LINE * 5 * (LINES * sub + vector));
                    in_threes!(ROWS, COUNT, first => {
                        let ahead = (asks && first == 0).then_some(ahead);
                        let inputs = inputs[first..].first_chunk::<COUNT>().expect("as many rows");
                        let results = results[first..].first_chunk_mut::<COUNT>().expect("as many rows");
                        sixteen(weight, sub, vector, inputs, results, steps, ahead);
                    });
                }
            }
        }
    }
}

/// The outputs of `COUNT` vectors from vector `FIRST` on, all rows.
///
/// # Safety
/// As [`Wide::dot_avx512`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
#[inline]
unsafe fn some_outputs<
    const ROWS: usize,
    const FIRST: usize,
    const COUNT: usize,
    const LINES: usize,
>(
    weights: &[Q4Block],
    x: &[Q4Inputs<ROWS>],
    results: &mut [OutputSums; ROWS],
    ahead: *const i8,
) {
    let low_halves = _mm512_set1_epi8(15);
    let mut totals: [[_; COUNT]; ROWS] = load(results, FIRST);
    for b in 0..weights.len() {
        // SAFETY: both are of this length.
        let (weight, inputs) = unsafe { (weights.get_unchecked(b), x.get_unchecked(b)) };
        let ahead = ahead.wrapping_add(LINE * (LINES * BLOCK_LINES / 2) * b);
        for sub in 0..SUBS {
            let mut sums = [[_mm512_setzero_si512(); COUNT]; ROWS];
            // Five steps of as many lines: a few more than the block has.
            let line = LINES * 5 * sub;
            for step in 0..STEPS / 2 {
                ask(ahead, line + LINES * step, LINES);
                for v in 0..COUNT {
                    // SAFETY: the array has 64 bytes, at a multiple of as many.
                    let both = unsafe {
                        _mm512_load_si512(weight.quants[sub][step][FIRST + v].as_ptr().cast())
                    };
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
            ask(ahead, line + LINES * (STEPS / 2), LINES);
            for v in 0..COUNT {
                let vector = FIRST + v;
                // SAFETY: arrays of 16 bytes, at multiples of 16, and of 16 floats, at multiples of 64.
                let factors = |floats: &[f32; 16], bytes: &[u8; 16]| unsafe {
                    let bytes = _mm_load_si128(bytes.as_ptr().cast());
                    let bytes = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
                    _mm512_mul_ps(_mm512_load_ps(floats.as_ptr()), bytes)
                };
                let scales = factors(&weight.scales[vector], &weight.sub_scales[sub][vector]);
                let mins = factors(&weight.min_scales[vector], &weight.sub_mins[sub][vector]);
                for row in 0..ROWS {
                    let input = &inputs[sub][row];
                    let scale = _mm512_mul_ps(scales, _mm512_set1_ps(input.scale));
                    let sum = _mm512_cvtepi32_ps(sums[row][v]);
                    let total = _mm512_fmadd_ps(scale, sum, totals[row][v]);
                    totals[row][v] = _mm512_fnmadd_ps(mins, _mm512_set1_ps(input.sum), total);
                }
            }
        }
    }
    store(totals, results, FIRST);
}

/// Sixteen outputs of a sub-block for `COUNT` rows, three at most; `steps` as in [`super::q8_x86`]. Two bytes hold
/// what a lane sums up, 16 products of at most 15 * 127, with room to spare.
#[target_feature(enable = "avx2,fma")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and halves index registers"
)]
#[inline(never)]
fn sixteen<const COUNT: usize>(
    weight: &Q4Block,
    sub: usize,
    vector: usize,
    inputs: &[InputBlock; COUNT],
    results: &mut [OutputSums; COUNT],
    steps: usize,
    ahead: Option<*const i8>,
) {
    let ask = |line| {
        if let Some(ahead) = ahead {
            ask(ahead, line, 1);
        }
    };
    let low_halves = _mm256_set1_epi8(15);
    let ones = _mm256_set1_epi16(1);
    let mut sums = [[_mm256_setzero_si256(); 2]; COUNT];
    for step in 0..steps.min(STEPS / 2) {
        ask(step);
        let halves: *const __m256i = weight.quants[sub][step][vector].as_ptr().cast();
        for half in 0..2 {
            // SAFETY: the array has twice 32 bytes, at a multiple of 64.
            let both = unsafe { _mm256_load_si256(halves.add(half)) };
            let low = _mm256_and_si256(both, low_halves);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low_halves);
            for row in 0..COUNT {
                let x_low = _mm256_set1_epi32(inputs[row].quants[step]);
                let x_high = _mm256_set1_epi32(inputs[row].quants[step + STEPS / 2]);
                let sum = &mut sums[row][half];
                *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(low, x_low));
                *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(high, x_high));
            }
        }
    }
    ask(STEPS / 2);
    for half in 0..2 {
        // SAFETY: 8 of 16 bytes, and 8 of 16 floats at a multiple of 32 bytes.
        let factors = |floats: &[f32; 16], bytes: &[u8; 16]| unsafe {
            let bytes = _mm_loadl_epi64(bytes.as_ptr().add(8 * half).cast());
            let bytes = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
            _mm256_mul_ps(_mm256_load_ps(floats.as_ptr().add(8 * half)), bytes)
        };
        let scales = factors(&weight.scales[vector], &weight.sub_scales[sub][vector]);
        let mins = factors(&weight.min_scales[vector], &weight.sub_mins[sub][vector]);
        for row in 0..COUNT {
            let sum = _mm256_madd_epi16(sums[row][half], ones);
            let scale = _mm256_mul_ps(scales, _mm256_set1_ps(inputs[row].scale));
            // SAFETY: 8 of 16 floats.
            unsafe {
                let total = results[row][vector].as_mut_ptr().add(8 * half);
                let with = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum), _mm256_loadu_ps(total));
                let sum = _mm256_set1_ps(inputs[row].sum);
                _mm256_storeu_ps(total, _mm256_fnmadd_ps(mins, sum, with));
            }
        }
    }
}
