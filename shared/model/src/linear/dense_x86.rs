//! The inner loop of [`super::dense`] in x86 vectors: fused multiply-adds in the order of the portable loop.

use std::arch::x86_64::{
    __m512, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_fmadd_ps, _mm256_load_ps,
    _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps,
    _mm512_fmadd_ps, _mm512_load_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_storeu_ps,
};

use super::{
    blocked::{LINE, Sums, VECTORS},
    dense::Weights,
};

/// AVX-512: two vectors hold a group's outputs. Asks memory for `LINES` lines from `ahead` on for each two
/// that it reads.
///
/// # Safety
/// `weights` and all of `x` are of one length, and weights are aligned to 64 bytes.
#[target_feature(enable = "avx512f")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
pub(super) unsafe fn dot_avx512<const ROWS: usize, const LINES: usize>(
    weights: &[Weights],
    x: [&[f32]; ROWS],
    results: &mut [Sums; ROWS],
    ahead: *const i8,
) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    for i in 0..weights.len() {
        for line in 0..LINES {
            // A hint, for any address.
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(LINE * (LINES * i + line)));
        }
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

/// AVX2: sixteen outputs and two rows at a time, in its sixteen registers.
///
/// # Safety
/// `weights` and all of `x` are of one length, and weights are aligned to 64 bytes.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn dot_avx2<const ROWS: usize>(
    weights: &[Weights],
    x: [&[f32]; ROWS],
    results: &mut [Sums; ROWS],
) {
    let (pairs, last) = x.as_chunks::<2>();
    for vector in 0..VECTORS {
        for (pair, x) in pairs.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { vector_rows(weights, *x, vector, &mut results[2 * pair..]) };
        }
        if let [x] = last {
            // SAFETY: as above.
            unsafe { vector_rows(weights, [x], vector, &mut results[ROWS - 1..]) };
        }
    }
}

/// Sixteen outputs for `ROWS` rows.
///
/// # Safety
/// As [`dot_avx2`].
#[target_feature(enable = "avx2,fma")]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and halves index registers"
)]
unsafe fn vector_rows<const ROWS: usize>(
    weights: &[Weights],
    x: [&[f32]; ROWS],
    vector: usize,
    results: &mut [Sums],
) {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for i in 0..weights.len() {
        for half in 0..2 {
            // SAFETY: `i` is below the length of all, and 8 of 16 floats are aligned to 32 bytes.
            let weight =
                unsafe { _mm256_load_ps(weights.get_unchecked(i)[vector].as_ptr().add(8 * half)) };
            for row in 0..ROWS {
                // SAFETY: as above.
                let x = _mm256_set1_ps(unsafe { *x[row].get_unchecked(i) });
                sums[row][half] = _mm256_fmadd_ps(weight, x, sums[row][half]);
            }
        }
    }
    for row in 0..ROWS {
        for half in 0..2 {
            // SAFETY: 8 of an array of 16 floats.
            unsafe {
                let result = results[row][vector].as_mut_ptr().add(8 * half);
                _mm256_storeu_ps(
                    result,
                    _mm256_add_ps(_mm256_loadu_ps(result), sums[row][half]),
                );
            }
        }
    }
}
