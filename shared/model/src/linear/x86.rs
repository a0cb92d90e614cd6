//! What the kernels in x86 vectors have in common.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::packed::{LINE, OutputSums, VECTORS};

/// Does `part` for `first..first + COUNT` of `rows` rows, 1 to 6: as they are, or in two parts as even as can be.
/// Sums of 32 outputs in f32, or of sixteen and what they are made of, fill the registers of AVX2 at three rows.
macro_rules! in_threes {
    ($rows:expr, $count:ident, $first:ident => $part:expr) => {
        match $rows {
            1 => in_threes!(@ 1, 0, $count, $first, $part),
            2 => in_threes!(@ 2, 0, $count, $first, $part),
            3 => in_threes!(@ 3, 0, $count, $first, $part),
            4 => {
                in_threes!(@ 2, 0, $count, $first, $part);
                in_threes!(@ 2, 2, $count, $first, $part);
            }
            5 => {
                in_threes!(@ 3, 0, $count, $first, $part);
                in_threes!(@ 2, 3, $count, $first, $part);
            }
            6 => {
                in_threes!(@ 3, 0, $count, $first, $part);
                in_threes!(@ 3, 3, $count, $first, $part);
            }
            _ => unreachable!("a tile has 1 to 6 rows"),
        }
    };
    (@ $rows:literal, $at:literal, $count:ident, $first:ident, $part:expr) => {{
        const $count: usize = $rows;
        let $first: usize = $at;
        $part
    }};
}

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
pub(super) fn load<const ROWS: usize>(sums: &[OutputSums; ROWS]) -> [[__m512; VECTORS]; ROWS] {
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
pub(super) fn store<const ROWS: usize>(
    loaded: [[__m512; VECTORS]; ROWS],
    sums: &mut [OutputSums; ROWS],
) {
    for row in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: 16 floats.
            unsafe { _mm512_storeu_ps(sums[row][v].as_mut_ptr(), loaded[row][v]) };
        }
    }
}
