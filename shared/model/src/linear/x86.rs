//! What the kernels in x86 vectors have in common.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::block::OutputSums;
use super::slab::LINE;

/// Does `part` for `first..first + COUNT` of `rows` rows, 1 to 8, in as many parts as they are listed in below.
macro_rules! in_parts {
    ($rows:expr, $count:ident, $first:ident => $part:expr, { $($of:literal: $($at:literal + $some:literal),+;)+ }) => {
        match $rows {
            $($of => {
                $({
                    const $count: usize = $some;
                    let $first: usize = $at;
                    $part
                })+
            })+
            _ => unreachable!("a tile has 1 to 8 rows"),
        }
    };
}

/// Does `part` for at most three rows at a time: sums of 32 outputs in f32, or of sixteen and what they are made of,
/// fill the registers of AVX2 then.
macro_rules! in_threes {
    ($rows:expr, $count:ident, $first:ident => $part:expr) => {
        in_parts!($rows, $count, $first => $part, {
            1: 0 + 1;
            2: 0 + 2;
            3: 0 + 3;
            4: 0 + 2, 2 + 2;
            5: 0 + 3, 3 + 2;
            6: 0 + 3, 3 + 3;
            7: 0 + 3, 3 + 2, 5 + 2;
            8: 0 + 3, 3 + 3, 6 + 2;
        })
    };
}

/// Does `part` for at most six rows at a time: sums and totals of 32 outputs fill the registers of AVX-512 then.
macro_rules! in_sixes {
    ($rows:expr, $count:ident, $first:ident => $part:expr) => {
        in_parts!($rows, $count, $first => $part, {
            1: 0 + 1;
            2: 0 + 2;
            3: 0 + 3;
            4: 0 + 4;
            5: 0 + 5;
            6: 0 + 6;
            7: 0 + 4, 4 + 3;
            8: 0 + 4, 4 + 4;
        })
    };
}

/// Asks memory for `lines` lines, the first of them `line` lines after `ahead`.
#[inline(always)]
pub(super) fn ask(ahead: *const i8, line: usize, lines: usize) {
    for line in line..line + lines {
        // SAFETY: all CPUs of this kind have it, and it is a hint, for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(LINE * line)) };
    }
}

/// The sums of `COUNT` vectors from vector `first` on, to be added to.
#[inline]
#[allow(
    clippy::needless_range_loop,
    reason = "rows and vectors index registers"
)]
#[target_feature(enable = "avx512f")]
pub(super) fn load<const ROWS: usize, const COUNT: usize>(
    sums: &[OutputSums; ROWS],
    first: usize,
) -> [[__m512; COUNT]; ROWS] {
    let mut loaded = [[_mm512_setzero_ps(); COUNT]; ROWS];
    for row in 0..ROWS {
        for v in 0..COUNT {
            // SAFETY: 16 floats.
            loaded[row][v] = unsafe { _mm512_loadu_ps(sums[row][first + v].as_ptr()) };
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
pub(super) fn store<const ROWS: usize, const COUNT: usize>(
    loaded: [[__m512; COUNT]; ROWS],
    sums: &mut [OutputSums; ROWS],
    first: usize,
) {
    for row in 0..ROWS {
        for v in 0..COUNT {
            // SAFETY: 16 floats.
            unsafe { _mm512_storeu_ps(sums[row][first + v].as_mut_ptr(), loaded[row][v]) };
        }
    }
}
