//! The inner loop of [`super::dense`] in x86 vectors: fused multiply-adds in the order of the portable loop.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{
    block::{OutputSums, VECTORS, Wide},
    dense::DenseWeights,
    slab::LINE,
    x86::ask,
};

/// Vectors of eight outputs in a group.
const QUARTERS: usize = 2 * VECTORS;

impl Wide for DenseWeights {
    /// AVX-512: two vectors hold a group's outputs.
    #[target_feature(enable = "avx512f")]
    #[allow(
        clippy::needless_range_loop,
        reason = "rows and vectors index registers"
    )]
    unsafe fn dot_avx512<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: [&[f32]; ROWS],
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    ) {
        let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
        for i in 0..weights.len() {
            ask(ahead, LINES * i, LINES);
            let weight: [__m512; VECTORS] = std::array::from_fn(|v| {
                // SAFETY: `i` is below the length of all, and 16 numbers are aligned to 64 bytes.
                unsafe { _mm512_load_ps(weights.get_unchecked(i)[v].as_ptr()) }
            });
            for row in 0..ROWS {
                // SAFETY: as above.
                let x = _mm512_set1_ps(unsafe { *x[row].get_unchecked(i) });
                for v in 0..VECTORS {
                    sums[row][v] = _mm512_fmadd_ps(weight[v], x, sums[row][v]);
                }
            }
        }
        for row in 0..ROWS {
            for v in 0..VECTORS {
                let result = results[row][v].as_mut_ptr();
                // SAFETY: 16 floats.
                unsafe {
                    _mm512_storeu_ps(result, _mm512_add_ps(_mm512_loadu_ps(result), sums[row][v]));
                };
            }
        }
    }

    /// AVX2: all 32 outputs of up to three rows at a time, in its sixteen registers; more rows go over the
    /// weights again, and find them in the innermost cache.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn dot_avx2<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: [&[f32]; ROWS],
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    ) {
        // The first two parts ask for a half each, if there is so much to ask for.
        let lines = if ROWS > 3 { LINES.min(1) } else { LINES };
        in_threes!(ROWS, COUNT, first => {
            let lines = match first {
                0 => lines,
                1..=3 => LINES - lines,
                _ => 0,
            };
            let ahead = ahead.wrapping_add(if first == 0 { 0 } else { LINE * weights.len() });
            let x = x[first..].first_chunk::<COUNT>().expect("as many rows");
            let results = results[first..].first_chunk_mut::<COUNT>().expect("as many rows");
            // SAFETY: the caller's promise.
            unsafe { some_rows(weights, x, results, lines, ahead) };
        });
    }
}

/// All outputs of `COUNT` rows, three at most.
///
/// # Safety
/// As [`Wide::dot_avx2`].
#[target_feature(enable = "avx2,fma")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and quarters index registers"
)]
#[inline]
unsafe fn some_rows<const COUNT: usize>(
    weights: &[DenseWeights],
    x: &[&[f32]; COUNT],
    results: &mut [OutputSums; COUNT],
    lines: usize,
    ahead: *const i8,
) {
    let mut sums = [[_mm256_setzero_ps(); QUARTERS]; COUNT];
    for i in 0..weights.len() {
        ask(ahead, lines * i, lines);
        let x: [__m256; COUNT] = std::array::from_fn(|row| {
            // SAFETY: `i` is below the length of all.
            _mm256_set1_ps(unsafe { *x[row].get_unchecked(i) })
        });
        for quarter in 0..QUARTERS {
            // SAFETY: as above, and 8 of 32 floats are aligned to 32 bytes.
            let weight = unsafe {
                let weights = weights.get_unchecked(i).as_flattened();
                _mm256_load_ps(weights.as_ptr().add(8 * quarter))
            };
            for row in 0..COUNT {
                sums[row][quarter] = _mm256_fmadd_ps(weight, x[row], sums[row][quarter]);
            }
        }
    }
    for (results, sums) in results.iter_mut().zip(sums) {
        let results = results.as_flattened_mut().chunks_exact_mut(8);
        for (result, sum) in results.zip(sums) {
            // SAFETY: 8 floats.
            unsafe {
                let sum = _mm256_add_ps(_mm256_loadu_ps(result.as_ptr()), sum);
                _mm256_storeu_ps(result.as_mut_ptr(), sum);
            }
        }
    }
}
