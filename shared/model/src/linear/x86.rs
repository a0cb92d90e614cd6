//! What the kernels in x86 vectors have in common.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::packed::{LINE, Sums, VECTORS};

/// Asks memory for `lines` lines, the first of them `line` lines after `ahead`.
#[inline(always)]
pub(super) fn ask(ahead: *const i8, line: usize, lines: usize) {
    for line in line..line + lines {
        // SAFETY: all CPUs of this kind have it, and it is a hint, for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(LINE * line)) };
    }
}

/// Sums, to be added to.
#[inline]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
#[target_feature(enable = "avx512f")]
pub(super) fn load<const ROWS: usize>(sums: &[Sums; ROWS]) -> [[__m512; VECTORS]; ROWS] {
    let mut loaded = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    for row in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: 16 floats.
            loaded[row][v] = unsafe { _mm512_loadu_ps(sums[row][v].as_ptr()) };
        }
    }
    loaded
}

/// Takes what was added to.
#[inline]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
#[target_feature(enable = "avx512f")]
pub(super) fn store<const ROWS: usize>(loaded: [[__m512; VECTORS]; ROWS], sums: &mut [Sums; ROWS]) {
    for row in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: 16 floats.
            unsafe { _mm512_storeu_ps(sums[row][v].as_mut_ptr(), loaded[row][v]) };
        }
    }
}
