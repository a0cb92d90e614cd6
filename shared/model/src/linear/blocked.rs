//! The order in which a product goes through weights and activations.
//!
//! One group of 32 outputs at a time, one chunk of the inputs at a time: the chunk's weights come
//! from memory once and stay in the innermost cache while all rows go over them. What the sums are
//! after a chunk is kept, so no order but that of the inputs ever adds up: a row's result does not
//! depend on how many rows there are.
//!
//! A thread reads weights from one end to the other, and asks for them ahead: what the CPU guesses by
//! itself is not enough once there is something to compute between two reads.

use std::ops::Range;

use speculation::simd::Level;

use super::{
    ahead::Ahead,
    block::{LANES, OutputSums, VECTORS, Wide},
    order::GROUP,
    packed::Packed,
};
use crate::cpu::SharedSlice;

/// Most rows that a kernel computes together: those of sixteen outputs, sums and totals, fill 32 registers.
const TILE: usize = 8;
/// Most rows that a chunk's weights are kept for: their sums stay close by.
const BAND: usize = 64;
/// Rows that need no such band.
const FEW: usize = 8;

/// Where the rows of a product stand in tiles of at most [`TILE`]. Tiles are as even as can be: 5 and 4
/// rows take less time than 8 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) start: usize,
    pub(super) rows: usize,
}

impl Tile {
    /// The tile that `row` of `rows` is in.
    pub(super) fn of_row(row: usize, rows: usize) -> Self {
        let band = row / BAND * BAND;
        let end = rows.min(band + BAND);
        let tile = Self::rows(end - band);
        let start = band + (row - band) / tile * tile;
        Self {
            start,
            rows: tile.min(end - start),
        }
    }

    /// Rows of each tile but the last of a band of `rows`.
    fn rows(rows: usize) -> usize {
        rows.div_ceil(rows.div_ceil(TILE))
    }
}

/// Results `(rows, outputs)`, written by several threads, each its own outputs.
#[derive(Clone, Copy)]
pub(super) struct ProductOutput<'a> {
    y: SharedSlice<'a, f32>,
    rows: usize,
    outputs: usize,
    bias: Option<&'a [f32]>,
}

impl<'a> ProductOutput<'a> {
    /// `bias`, if there is one, is `(outputs)`.
    pub(super) fn new(y: &'a mut [f32], outputs: usize, bias: Option<&'a [f32]>) -> Self {
        Self {
            rows: y.len() / outputs,
            y: SharedSlice::new(y),
            outputs,
            bias,
        }
    }

    /// Writes the results of `row` for the outputs from 32 * `group` on.
    ///
    /// # Safety
    /// No two threads write the same group at the same time.
    unsafe fn write(&self, row: usize, group: usize, results: &OutputSums) {
        let first = group * GROUP;
        assert!(row < self.rows && first < self.outputs);
        let results = results.as_flattened();
        let count = GROUP.min(self.outputs - first);
        // SAFETY: of this row, by the line above, and nobody else's, as the caller promises.
        let y = unsafe { self.y.range(row * self.outputs + first, count) };
        // All but the last group are whole: a copy of a length that is known is no call.
        match (y.as_mut_array::<GROUP>(), results.as_array::<GROUP>()) {
            (Some(y), Some(results)) => *y = *results,
            _ => y.copy_from_slice(&results[..count]),
        }
        if let Some(bias) = self.bias {
            for (y, bias) in y.iter_mut().zip(&bias[first..]) {
                *y += bias;
            }
        }
    }
}

/// Results of some groups, all rows of them.
pub(crate) struct Computed<'a> {
    output: ProductOutput<'a>,
    /// Groups of 32 outputs.
    pub(crate) groups: Range<usize>,
}

impl<'a> Computed<'a> {
    /// The results for `groups`.
    ///
    /// # Safety
    /// They are written, and nobody writes them again while this is used.
    pub(super) unsafe fn new(output: ProductOutput<'a>, groups: Range<usize>) -> Self {
        Self { output, groups }
    }

    pub(crate) fn rows(&self) -> usize {
        self.output.rows
    }

    /// The 32 results of `row` for `group` and as many for the next, both among the groups and whole.
    #[inline(always)]
    pub(crate) fn pair(&self, row: usize, group: usize) -> (&[f32; GROUP], &[f32; GROUP]) {
        let ProductOutput {
            y, rows, outputs, ..
        } = self.output;
        let first = group * GROUP;
        assert!(row < rows && self.groups.start <= group && group + 2 <= self.groups.end);
        assert!(first + 2 * GROUP <= outputs);
        // SAFETY: of this row, by the lines above, and nobody writes them, as who made this promises.
        let pair: &[f32] = unsafe { y.read(row * outputs + first, 2 * GROUP) };
        match pair.as_chunks().0 {
            [first, second] => (first, second),
            _ => unreachable!("a pair is two groups"),
        }
    }
}

/// Writes the products of all rows of `x` with the outputs of `groups` to `output`. `then` is what the
/// thread reads afterwards, if that is known and not what follows.
///
/// # Safety
/// No other thread works on one of these groups of `output` at the same time.
pub(super) unsafe fn multiply<B: Wide>(
    matrix: &Packed<B>,
    level: Level,
    groups: Range<usize>,
    x: &[B::Input],
    output: ProductOutput<'_>,
    then: Option<*const i8>,
) {
    // Sums are zeroed for each range of groups; decoding has few rows, and small ranges.
    if output.rows <= FEW {
        // SAFETY: the caller's promise.
        unsafe { multiply_bands::<B, FEW>(matrix, level, groups, x, output, then) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { multiply_bands::<B, BAND>(matrix, level, groups, x, output, then) };
    }
}

/// The same, for `BAND` rows at a time.
///
/// # Safety
/// As for [`multiply`].
unsafe fn multiply_bands<B: Wide, const BAND: usize>(
    matrix: &Packed<B>,
    level: Level,
    groups: Range<usize>,
    x: &[B::Input],
    output: ProductOutput<'_>,
    then: Option<*const i8>,
) {
    let last = groups.end - 1;
    let row_len = matrix.per_row * B::STEPS;
    let chunk_len = B::chunk_len(matrix.per_row);
    // Clearing sums for a band takes as long as a small product.
    let (mut few, mut many);
    let sums: &mut [OutputSums] = if x.len() <= TILE * row_len {
        few = [[[0.0; LANES]; VECTORS]; TILE];
        &mut few
    } else {
        many = [[[0.0; LANES]; VECTORS]; BAND];
        &mut many
    };
    for group in groups {
        for (band, x) in x.chunks(BAND * row_len).enumerate() {
            let rows = x.len() / row_len;
            let sums = &mut sums[..rows];
            sums.fill([[0.0; LANES]; VECTORS]);
            let tile = Tile::rows(rows);
            let tiles = rows.div_ceil(tile);
            for start in (0..matrix.per_row).step_by(chunk_len) {
                let chunk = start..matrix.per_row.min(start + chunk_len);
                let each = x.chunks(tile * row_len).zip(sums.chunks_mut(tile));
                for (index, (x, sums)) in each.enumerate() {
                    let ahead = match then {
                        // What is a little further on is of the next matrix.
                        Some(then)
                            if tiles == 1 && group == last && chunk.end == matrix.per_row =>
                        {
                            Ahead::From(then)
                        }
                        _ => Ahead::of_tile(index, tiles),
                    };
                    matrix.add(level, group, chunk.clone(), x, sums, ahead);
                }
            }
            for (row, sums) in sums.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { output.write(band * BAND + row, group, sums) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_even_and_hold_every_row_once() {
        let sizes = |rows: usize| {
            let mut sizes = Vec::new();
            let mut row = 0;
            while row < rows {
                let tile = Tile::of_row(row, rows);
                assert_eq!(tile.start, row, "of {rows}");
                for of in row..row + tile.rows {
                    assert_eq!(Tile::of_row(of, rows), tile, "{of} of {rows}");
                }
                sizes.push(tile.rows);
                row += tile.rows;
            }
            assert_eq!(row, rows);
            sizes
        };
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(8), [8]);
        assert_eq!(sizes(9), [5, 4]);
        assert_eq!(sizes(20), [7, 7, 6]);
        assert_eq!(sizes(64), [8; 8]);
        assert_eq!(sizes(73)[8..], [5, 4]);
    }
}
