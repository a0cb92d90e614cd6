//! The order in which a product goes through weights and activations.
//!
//! One group of 32 outputs at a time, one chunk of the inputs at a time: the chunk's weights come
//! from memory once and stay in the innermost cache while all rows go over them. What the sums are
//! after a chunk is kept, so no order but that of the inputs ever adds up: a row's result does not
//! depend on how many rows there are.
//!
//! A thread reads weights from one end to the other, and asks for them ahead: what the CPU guesses by
//! itself is not enough once there is something to compute between two reads.

use std::{marker::PhantomData, ops::Range};

use speculation::simd::Level;

/// Outputs of a vector.
pub(super) const LANES: usize = 16;
/// Vectors of outputs that share one reading of the activations: a group.
pub(super) const VECTORS: usize = 2;
/// Outputs of a group.
pub(crate) const GROUP: usize = VECTORS * LANES;
/// Bytes of a cache line.
pub(super) const LINE: usize = 64;
/// About how many bytes of weights a chunk has: two of them fit into the innermost cache.
pub(super) const CHUNK_BYTES: usize = 18 << 10;
/// Bytes ahead of its reading that a kernel asks memory for.
const SOON: usize = 14 << 10;
/// Most rows that a kernel computes together: what it holds sums for in 32 registers, or twice that in sixteen.
const TILE: usize = 6;
/// Most rows that a chunk's weights are kept for: their sums stay close by.
const BAND: usize = 64;
/// Rows that need no such band.
const FEW: usize = 8;

/// Sums of one row for the outputs of a group.
pub(super) type Sums = [[f32; LANES]; VECTORS];

/// What a kernel asks memory for while it computes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ahead {
    /// Nothing.
    None,
    /// As many weights as it reads, from a little further on.
    Soon,
    /// As many weights as it reads, from here on: those of another matrix.
    From(*const i8),
    /// A half of the next chunk, the first or the second.
    Half(usize),
}

impl Ahead {
    /// What the tile at `index` of `tiles` asks for. One tile reads as fast as memory delivers; of several
    /// the last two have time to spare.
    fn of_tile(index: usize, tiles: usize) -> Self {
        match (index + 2).checked_sub(tiles) {
            _ if tiles == 1 => Self::Soon,
            Some(half) => Self::Half(half),
            None => Self::None,
        }
    }

    /// Where to begin, for a kernel that reads `weights`. It may be beyond all weights: memory is asked
    /// for hints only.
    pub(super) fn start<T>(self, weights: &[T]) -> *const i8 {
        let start = weights.as_ptr().cast::<i8>();
        let bytes = size_of_val(weights);
        match self {
            Self::None => start,
            Self::Soon => start.wrapping_add(SOON),
            Self::From(start) => start,
            Self::Half(half) => start.wrapping_add(bytes + half * (bytes / 2)),
        }
    }
}

/// Where the rows of a product stand in tiles of at most [`TILE`]. Tiles are as even as can be: 4 and 3
/// rows take less time than 6 and 1.
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

/// A matrix in the layout of its kernel.
pub(super) trait Packed: Sync {
    /// What activations are brought to.
    type Input: Sync;

    /// Groups of 32 outputs.
    fn groups(&self) -> usize;

    /// Where the weights of a group begin.
    fn start(&self, group: usize) -> *const i8;

    /// Inputs of one row, in `Input`s.
    fn row_len(&self) -> usize;

    /// Inputs of a chunk, in `Input`s.
    fn chunk_len(&self) -> usize;

    /// Adds the products of the inputs `chunk` of each row of `x`, a tile, with the outputs of `group` to
    /// `sums`, one a row.
    fn add(
        &self,
        level: Level,
        group: usize,
        chunk: Range<usize>,
        x: &[Self::Input],
        sums: &mut [Sums],
        ahead: Ahead,
    );
}

/// Results `(rows, outputs)`, written by several threads, each its own outputs.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    start: *mut f32,
    rows: usize,
    outputs: usize,
    bias: Option<&'a [f32]>,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: who calls `write` from several threads promises to write different outputs.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    /// `bias`, if there is one, is `(outputs)`.
    pub(super) fn new(y: &'a mut [f32], outputs: usize, bias: Option<&'a [f32]>) -> Self {
        Self {
            start: y.as_mut_ptr(),
            rows: y.len() / outputs,
            outputs,
            bias,
            borrowed: PhantomData,
        }
    }

    /// Writes the results of `row` for the outputs from 32 * `group` on.
    ///
    /// # Safety
    /// No two threads write the same group at the same time.
    unsafe fn write(&self, row: usize, group: usize, results: &Sums) {
        let first = group * GROUP;
        assert!(row < self.rows && first < self.outputs);
        let results = results.as_flattened();
        let count = GROUP.min(self.outputs - first);
        // SAFETY: within the results, by the line above, and nobody else's, as the caller promises.
        let y = unsafe {
            std::slice::from_raw_parts_mut(self.start.add(row * self.outputs + first), count)
        };
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
    output: Output<'a>,
    /// Groups of 32 outputs.
    pub(crate) groups: Range<usize>,
}

impl<'a> Computed<'a> {
    /// The results for `groups`.
    ///
    /// # Safety
    /// They are written, and nobody writes them again while this is used.
    pub(super) unsafe fn new(output: Output<'a>, groups: Range<usize>) -> Self {
        Self { output, groups }
    }

    pub(crate) fn rows(&self) -> usize {
        self.output.rows
    }

    /// The 32 results of `row` for `group` and as many for the next, both among the groups and whole.
    #[inline(always)]
    pub(crate) fn pair(&self, row: usize, group: usize) -> (&[f32; GROUP], &[f32; GROUP]) {
        let Output { rows, outputs, .. } = self.output;
        let first = group * GROUP;
        assert!(row < rows && self.groups.start <= group && group + 2 <= self.groups.end);
        assert!(first + 2 * GROUP <= outputs);
        // SAFETY: within the results, by the lines above, and nobody writes them, as who made this promises.
        let pair = unsafe {
            &*self
                .output
                .start
                .add(row * outputs + first)
                .cast::<[_; 2]>()
        };
        let [first, second]: &[[f32; GROUP]; 2] = pair;
        (first, second)
    }
}

/// Writes the products of all rows of `x` with the outputs of `groups` to `output`. `then` is what the
/// thread reads afterwards, if that is known and not what follows.
///
/// # Safety
/// No other thread works on one of these groups of `output` at the same time.
pub(super) unsafe fn multiply<P: Packed>(
    matrix: &P,
    level: Level,
    groups: Range<usize>,
    x: &[P::Input],
    output: Output<'_>,
    then: Option<*const i8>,
) {
    // Sums are zeroed for each range of groups; decoding has few rows, and small ranges.
    if output.rows <= FEW {
        // SAFETY: the caller's promise.
        unsafe { multiply_bands::<P, FEW>(matrix, level, groups, x, output, then) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { multiply_bands::<P, BAND>(matrix, level, groups, x, output, then) };
    }
}

/// The same, for `BAND` rows at a time.
///
/// # Safety
/// As for [`multiply`].
unsafe fn multiply_bands<P: Packed, const BAND: usize>(
    matrix: &P,
    level: Level,
    groups: Range<usize>,
    x: &[P::Input],
    output: Output<'_>,
    then: Option<*const i8>,
) {
    let last = groups.end - 1;
    let row_len = matrix.row_len();
    // Clearing sums for a band takes as long as a small product.
    let (mut few, mut many);
    let sums: &mut [Sums] = if x.len() <= TILE * row_len {
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
            for start in (0..row_len).step_by(matrix.chunk_len()) {
                let chunk = start..row_len.min(start + matrix.chunk_len());
                let each = x.chunks(tile * row_len).zip(sums.chunks_mut(tile));
                for (index, (x, sums)) in each.enumerate() {
                    let ahead = match then {
                        // What is a little further on is of the next matrix.
                        Some(then) if tiles == 1 && group == last && chunk.end == row_len => {
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
        assert_eq!(sizes(6), [6]);
        assert_eq!(sizes(7), [4, 3]);
        assert_eq!(sizes(16), [6, 6, 4]);
        assert_eq!(sizes(64), [6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4]);
        assert_eq!(sizes(71)[11..], [4, 3]);
    }

    #[test]
    fn the_last_two_tiles_ask_for_the_next_chunk() {
        let weights = [[0_u8; LINE]; 8];
        let of = |index, tiles| {
            let start = Ahead::of_tile(index, tiles).start(&weights);
            start as usize - weights.as_ptr() as usize
        };
        assert_eq!(of(0, 1), SOON);
        assert_eq!([of(0, 2), of(1, 2)], [512, 768]);
        assert_eq!([of(0, 4), of(1, 4), of(2, 4), of(3, 4)], [0, 0, 512, 768]);
    }
}
