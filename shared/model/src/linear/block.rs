//! Blocks of weights: some inputs of 32 outputs, in the layout of the kernel that reads them.

use std::{fmt::Debug, ops::Range};

use super::order::GROUP;

/// Outputs of a vector.
pub(super) const LANES: usize = 16;
/// Vectors of outputs that share one reading of the activations: a group.
pub(super) const VECTORS: usize = GROUP / LANES;
/// About how many bytes of weights a chunk has: two of them fit into the innermost cache.
const CHUNK_BYTES: usize = 18 << 10;
/// Sums of one row for the outputs of a group.
pub(super) type OutputSums = [[f32; LANES]; VECTORS];

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
    /// [`PackedBlock::dot_portable`] in the instructions of [`Level::Avx512Vnni`](speculation::simd::Level).
    ///
    /// # Safety
    /// The CPU has them, and there are as many `weights`, aligned to 64 bytes, as inputs.
    unsafe fn dot_avx512<const ROWS: usize, const LINES: usize>(
        weights: &[Self],
        x: Self::Inputs<'_, ROWS>,
        results: &mut [OutputSums; ROWS],
        ahead: *const i8,
    );

    /// The same in those of [`Level::Avx2`](speculation::simd::Level).
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
