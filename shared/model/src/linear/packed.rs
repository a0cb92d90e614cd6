//! Weights in blocks of some inputs of 32 outputs, whatever their format, and the kernels that read them.

use std::{fmt::Debug, ops::Range, sync::Arc};

use memmap2::Mmap;
use speculation::simd::Level;

use super::{
    mapped::{Blocks, MappedBlocks, PlainBlock},
    order::{GROUP, OutputOrder},
    rows::{MatrixRows, READ_INPUTS, RowPart},
    storage::Storage,
};
use crate::cpu::Threads;

/// Outputs of a vector.
pub(super) const LANES: usize = 16;
/// Vectors of outputs that share one reading of the activations: a group.
pub(super) const VECTORS: usize = GROUP / LANES;
/// About how many bytes of weights a chunk has: two of them fit into the innermost cache.
const CHUNK_BYTES: usize = 18 << 10;
/// Bytes ahead of its reading that a kernel asks memory for.
const SOON: usize = 14 << 10;

/// Sums of one row for the outputs of a group.
pub(super) type OutputSums = [[f32; LANES]; VECTORS];

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
    /// Returns what the tile at `index` of `tiles` asks for. One tile reads as fast as memory delivers; of several the
    /// last two have time to spare.
    pub(super) fn of_tile(index: usize, tiles: usize) -> Self {
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

/// Some inputs of 32 outputs, in the layout of its kernel.
pub(super) trait PackedBlock: Copy + Debug + Send + Sync {
    /// What activations are brought to.
    type Input: Sync;
    /// What some blocks are multiplied with: inputs of some rows.
    type Inputs<'a, const ROWS: usize>: Copy;
    /// Inputs of a block.
    const INPUTS: usize;
    /// The same in `Input`s.
    const STEPS: usize;
    /// Zeros.
    const EMPTY: Self;

    /// Blocks of a chunk, of the `per_row` of a row: chunks of one size.
    fn chunk_len(per_row: usize) -> usize {
        per_row.div_ceil((per_row * size_of::<Self>()).div_ceil(CHUNK_BYTES))
    }

    /// Writes the weights of `output`, one of the 32, to `values`: as many as the block has, or fewer.
    fn read(&self, output: usize, values: &mut [f32]);

    /// Returns what goes with the blocks `chunk` of `ROWS` rows, of a tile `x`.
    fn inputs<const ROWS: usize>(x: &[Self::Input], chunk: Range<usize>) -> Self::Inputs<'_, ROWS>;

    /// Adds the products of `weights` with as many blocks of `ROWS` rows to `sums`, one a row.
    fn dot_portable<const ROWS: usize>(
        weights: &[Self],
        x: Self::Inputs<'_, ROWS>,
        sums: &mut [OutputSums; ROWS],
    );
}

/// A block whose products x86 vectors compute, to the same bits. They ask memory for `LINES` lines from `ahead`
/// on for each two that they read.
#[cfg(target_arch = "x86_64")]
pub(super) trait Wide: PackedBlock {
    /// [`PackedBlock::dot_portable`] in the instructions of [`Level::Avx512Vnni`].
    ///
    /// # Safety
    /// The CPU has them, and there are as many `weights`, aligned to 64 bytes, as inputs.
    unsafe fn dot_avx512<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: Self::Inputs<'_, ROWS>,
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    );

    /// The same in those of [`Level::Avx2`].
    ///
    /// # Safety
    /// As for [`Wide::dot_avx512`].
    unsafe fn dot_avx2<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: Self::Inputs<'_, ROWS>,
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    );
}

/// Other CPUs have no kernels of their own.
#[cfg(not(target_arch = "x86_64"))]
pub(super) trait Wide: PackedBlock {}

#[cfg(not(target_arch = "x86_64"))]
impl<B: PackedBlock> Wide for B {}

/// A matrix `(outputs, inputs)`.
#[derive(Clone, Debug)]
pub(super) struct Packed<B: Copy> {
    /// `(groups of 32 outputs, blocks of a row)`, both padded with zeros.
    blocks: Blocks<B>,
    /// Blocks of a row.
    pub(super) per_row: usize,
}

impl<B: Wide> Packed<B> {
    /// Packs a matrix of `(outputs, inputs)`, whose rows `rows` reads: `pack` brings some inputs of one output of 32
    /// to their blocks. Threads share the groups.
    pub(super) fn new(
        threads: &Threads,
        order: OutputOrder,
        [outputs, inputs]: [usize; 2],
        rows: &impl MatrixRows,
        pack: impl Fn(&mut [B], usize, RowPart<'_>) + Sync,
    ) -> Self {
        let per_row = inputs.div_ceil(B::INPUTS);
        let groups = order.outputs(outputs).div_ceil(GROUP);
        let at_once = READ_INPUTS / B::INPUTS;
        let blocks = Storage::in_parts(threads, B::EMPTY, groups, per_row, |group, blocks| {
            let mut buffer = Vec::new();
            for (index, blocks) in blocks.chunks_mut(at_once).enumerate() {
                let first = index * READ_INPUTS;
                let some = first..inputs.min(first + READ_INPUTS);
                for output in 0..GROUP {
                    if let Some(given) = order.given(group * GROUP + output, outputs) {
                        pack(blocks, output, rows.read(given, some.clone(), &mut buffer));
                    }
                }
            }
        });
        Self {
            blocks: Blocks::Held(blocks),
            per_row,
        }
    }

    /// Takes a matrix of `(outputs, inputs)` that was packed before, in the bytes `range` of `map`; `None` if they are
    /// not as many as it has.
    pub(super) fn mapped(
        order: OutputOrder,
        [outputs, inputs]: [usize; 2],
        map: &Arc<Mmap>,
        range: Range<usize>,
    ) -> Option<Self>
    where
        B: PlainBlock,
    {
        let per_row = inputs.div_ceil(B::INPUTS);
        let groups = order.outputs(outputs).div_ceil(GROUP);
        let blocks = MappedBlocks::of(map, range)?;
        (blocks.len() == groups * per_row).then_some(Self {
            blocks: Blocks::Mapped(blocks),
            per_row,
        })
    }

    /// The weights as they stand in memory.
    pub(super) fn as_bytes(&self) -> &[u8]
    where
        B: PlainBlock,
    {
        self.blocks.bytes()
    }

    /// Bytes of the weights.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    /// Writes the weights of one output, `(inputs)`.
    pub(super) fn read_row(&self, output: usize, row: &mut [f32]) {
        let blocks = &self.blocks[output / GROUP * self.per_row..];
        for (values, block) in row.chunks_mut(B::INPUTS).zip(blocks) {
            block.read(output % GROUP, values);
        }
    }

    /// Groups of 32 outputs.
    pub(super) fn groups(&self) -> usize {
        self.blocks.len() / self.per_row
    }

    /// Where the weights of a group begin.
    pub(super) fn start(&self, group: usize) -> *const i8 {
        self.blocks[group * self.per_row..].as_ptr().cast()
    }

    /// Adds the products of the blocks `chunk` of each row of `x`, a tile, with the outputs of `group` to
    /// `sums`, one a row.
    pub(super) fn add(
        &self,
        level: Level,
        group: usize,
        chunk: Range<usize>,
        x: &[B::Input],
        sums: &mut [OutputSums],
        ahead: Ahead,
    ) {
        let weights = &self.blocks[group * self.per_row..][..self.per_row][chunk.clone()];
        match sums.len() {
            1 => dot::<B, 1>(level, weights, x, chunk, sums, ahead),
            2 => dot::<B, 2>(level, weights, x, chunk, sums, ahead),
            3 => dot::<B, 3>(level, weights, x, chunk, sums, ahead),
            4 => dot::<B, 4>(level, weights, x, chunk, sums, ahead),
            5 => dot::<B, 5>(level, weights, x, chunk, sums, ahead),
            6 => dot::<B, 6>(level, weights, x, chunk, sums, ahead),
            7 => dot::<B, 7>(level, weights, x, chunk, sums, ahead),
            _ => dot::<B, 8>(level, weights, x, chunk, sums, ahead),
        }
    }
}

/// Does `call`, in which `LINES` are those of memory that a kernel asks for, for each two that it reads, to do
/// what `ahead` says.
#[cfg(target_arch = "x86_64")]
macro_rules! asking {
    ($ahead:expr, $lines:ident => $call:expr) => {
        match $ahead {
            Ahead::None => {
                const $lines: usize = 0;
                $call
            }
            Ahead::Half(_) => {
                const $lines: usize = 1;
                $call
            }
            Ahead::Soon | Ahead::From(_) => {
                const $lines: usize = 2;
                $call
            }
        }
    };
}

/// Adds the products of the blocks `chunk` of `ROWS` rows of `x` with `weights`, which are as many.
fn dot<B: Wide, const ROWS: usize>(
    level: Level,
    weights: &[B],
    x: &[B::Input],
    chunk: Range<usize>,
    sums: &mut [OutputSums],
    ahead: Ahead,
) {
    assert_eq!(weights.len(), chunk.len());
    let x = B::inputs::<ROWS>(x, chunk);
    let sums: &mut [OutputSums; ROWS] = sums.try_into().expect("a sum a row");
    match level {
        // SAFETY: this level is made only on CPUs with the features; the lengths are equal, by the lines above,
        // and weights are held in aligned storage.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => B::dot_avx512::<ROWS, LINES>(weights, x, sums, start));
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => unsafe {
            let start = ahead.start(weights);
            asking!(ahead, LINES => B::dot_avx2::<ROWS, LINES>(weights, x, sums, start));
        },
        Level::Baseline => B::dot_portable(weights, x, sums),
    }
}

#[cfg(test)]
mod tests {
    use super::super::storage::LINE;
    use super::*;

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
