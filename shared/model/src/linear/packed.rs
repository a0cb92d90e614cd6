//! Weights in blocks of some inputs of 32 outputs, whatever their format, and the kernels that read them.

use std::{fmt::Debug, ops::Range, sync::Arc};

use memmap2::Mmap;
use speculation::simd::Level;

use super::{
    ahead::Ahead,
    block::{OutputSums, Wide},
    mapped::{Blocks, MappedBlocks, PlainBlock},
    order::{GROUP, OutputOrder},
    rows::{MatrixRows, READ_INPUTS, RowPart},
    storage::Storage,
};
use crate::cpu::Threads;

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
