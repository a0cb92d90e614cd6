//! The inner loop of [`super::q8`] in x86 vectors: the same integers, and the same three roundings
//! a block, as the portable loop.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{
    block::{OutputSums, VECTORS, Wide},
    inputs::{InputBlock, STEPS},
    q8::Q8Block,
    slab::LINE,
    x86::{ask, load, store},
};

impl Wide for Q8Block {
    /// AVX-512 VNNI: one instruction multiplies four inputs of sixteen outputs; up to six rows at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn dot_avx512<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: &[[InputBlock; ROWS]],
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    ) {
        in_sixes!(ROWS, COUNT, first => {
            let results = results[first..].first_chunk_mut::<COUNT>().expect("as many rows");
            let half = ahead.wrapping_add(if first == 0 { 0 } else { size_of_val(weights) / 2 });
            // SAFETY: the caller's promise.
            unsafe {
                match LINES {
                    _ if COUNT == ROWS => some_rows::<ROWS, COUNT, LINES>(weights, x, first, results, ahead),
                    // Of two parts each asks for a half, if there is so much to ask for.
                    2 => some_rows::<ROWS, COUNT, 1>(weights, x, first, results, half),
                    1 if first == 0 => some_rows::<ROWS, COUNT, 1>(weights, x, first, results, ahead),
                    _ => some_rows::<ROWS, COUNT, 0>(weights, x, first, results, ahead),
                }
            }
        });
    }

    /// AVX2: sixteen outputs and up to three rows at a time, in its sixteen registers, block after block.
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn dot_avx2<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: &[[InputBlock; ROWS]],
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    ) {
        let steps = std::hint::black_box(STEPS);
        for (b, (weight, inputs)) in weights.iter().zip(x).enumerate() {
            let inputs: [Widened; ROWS] = std::array::from_fn(|row| Widened::new(&inputs[row]));
            for vector in 0..VECTORS {
                let asks = vector < LINES;
                let ahead = ahead.wrapping_add(LINE * (b * (LINES * STEPS + 1) + STEPS * vector));
                in_threes!(ROWS, COUNT, first => {
                    let ahead = (asks && first == 0).then_some(ahead);
                    let inputs = inputs[first..].first_chunk::<COUNT>().expect("as many rows");
                    let results = results[first..].first_chunk_mut::<COUNT>().expect("as many rows");
                    sixteen(weight, vector, inputs, results, steps, ahead);
                });
            }
        }
    }
}

/// All outputs of the `COUNT` rows from `first` on, six at most. Memory is asked for a line between others: a bunch of
/// requests would delay the reads.
///
/// # Safety
/// As [`Wide::dot_avx512`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
#[inline]
unsafe fn some_rows<const ROWS: usize, const COUNT: usize, const LINES: usize>(
    weights: &[Q8Block],
    x: &[[InputBlock; ROWS]],
    first: usize,
    results: &mut [OutputSums; COUNT],
    ahead: *const i8,
) {
    let mut totals: [[_; VECTORS]; COUNT] = load(results, 0);
    for b in 0..weights.len() {
        // SAFETY: both are of this length.
        let (weight, input) = unsafe { (weights.get_unchecked(b), x.get_unchecked(b)) };
        let input: &[InputBlock; COUNT] = input[first..].first_chunk().expect("as many rows");
        let mut sums = [[_mm512_setzero_si512(); VECTORS]; COUNT];
        for row in 0..COUNT {
            sums[row] = [_mm512_set1_epi32(input[row].offset); VECTORS];
        }
        // A block is two lines a step and one of scales; half as many are rounded up.
        let line = b * (LINES * STEPS + 1);
        for step in 0..STEPS {
            ask(ahead, line + LINES * step, LINES);
            let quants: [_; VECTORS] = std::array::from_fn(|v| {
                // SAFETY: the array has 64 bytes, and the struct is aligned to as many.
                unsafe { _mm512_load_si512(weight.quants[step][v].as_ptr().cast()) }
            });
            for row in 0..COUNT {
                let four = _mm512_set1_epi32(input[row].quants[step]);
                for v in 0..VECTORS {
                    sums[row][v] = _mm512_dpbusd_epi32(sums[row][v], quants[v], four);
                }
            }
        }
        ask(ahead, line + LINES * STEPS, LINES.min(1));
        for v in 0..VECTORS {
            // SAFETY: 16 halves at a multiple of 32 bytes.
            let scales = unsafe { _mm256_load_si256(weight.scales[v].as_ptr().cast()) };
            let scales = _mm512_cvtph_ps(scales);
            for row in 0..COUNT {
                let scale = _mm512_mul_ps(scales, _mm512_set1_ps(input[row].scale));
                let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[row][v]), scale);
                totals[row][v] = _mm512_add_ps(totals[row][v], product);
            }
        }
    }
    store(totals, results, 0);
}

/// A block of one row's inputs as AVX2 takes it, whose byte product saturates: widened to two bytes.
#[repr(C, align(32))]
struct Widened {
    /// Inputs 4s and 4s + 2, of each step s.
    even: [i32; STEPS],
    /// Inputs 4s + 1 and 4s + 3.
    odd: [i32; STEPS],
    scale: f32,
    offset: i32,
}

impl Widened {
    #[target_feature(enable = "avx2")]
    fn new(input: &InputBlock) -> Self {
        let mut widened = Self {
            even: [0; STEPS],
            odd: [0; STEPS],
            scale: input.scale,
            offset: input.offset,
        };
        // SAFETY: arrays of 32 bytes each; those written to stand first, at multiples of 32 bytes.
        unsafe {
            let quants = _mm256_loadu_si256(input.quants.as_ptr().cast());
            let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(quants));
            _mm256_store_si256(widened.even.as_mut_ptr().cast(), even);
            let odd = _mm256_srai_epi16::<8>(quants);
            _mm256_store_si256(widened.odd.as_mut_ptr().cast(), odd);
        }
        widened
    }
}

/// Sixteen outputs of a block for `COUNT` rows, three at most. `steps` is how many there are, told in a way that
/// keeps the compiler from unrolling them: it would move loads far ahead of their use, and run out of registers.
#[target_feature(enable = "avx2,f16c")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and halves index registers"
)]
#[inline(never)]
fn sixteen<const COUNT: usize>(
    weight: &Q8Block,
    vector: usize,
    inputs: &[Widened; COUNT],
    results: &mut [OutputSums; COUNT],
    steps: usize,
    ahead: Option<*const i8>,
) {
    let ask = |line| {
        if let Some(ahead) = ahead {
            ask(ahead, line, 1);
        }
    };
    let low_bytes = _mm256_set1_epi16(0xff);
    let mut sums = [[_mm256_setzero_si256(); 2]; COUNT];
    for row in 0..COUNT {
        sums[row] = [_mm256_set1_epi32(inputs[row].offset); 2];
    }
    for step in 0..steps.min(STEPS) {
        ask(step);
        let halves: *const __m256i = weight.quants[step][vector].as_ptr().cast();
        for half in 0..2 {
            // SAFETY: the array has twice 32 bytes, and the struct is aligned to 64.
            let quants = unsafe { _mm256_load_si256(halves.add(half)) };
            let even = _mm256_and_si256(quants, low_bytes);
            let odd = _mm256_srli_epi16::<8>(quants);
            for row in 0..COUNT {
                let x_even = _mm256_set1_epi32(inputs[row].even[step]);
                let x_odd = _mm256_set1_epi32(inputs[row].odd[step]);
                let sum = &mut sums[row][half];
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(even, x_even));
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(odd, x_odd));
            }
        }
    }
    ask(STEPS);
    for half in 0..2 {
        // SAFETY: 8 of 16 halves, at a multiple of 16 bytes.
        let scales = unsafe { _mm_load_si128(weight.scales[vector].as_ptr().add(8 * half).cast()) };
        let scales = _mm256_cvtph_ps(scales);
        for row in 0..COUNT {
            let scale = _mm256_mul_ps(scales, _mm256_set1_ps(inputs[row].scale));
            let product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[row][half]), scale);
            // SAFETY: 8 of 16 floats.
            unsafe {
                let total = results[row][vector].as_mut_ptr().add(8 * half);
                _mm256_storeu_ps(total, _mm256_add_ps(_mm256_loadu_ps(total), product));
            }
        }
    }
}
