//! Where the rows of a matrix come from while it is packed: numbers, or blocks as GGUF files have them.

use std::ops::Range;

/// Some inputs of one output.
pub(crate) enum RowPart<'a> {
    /// Numbers, to be brought to the matrix's format.
    Numbers(&'a [f32]),
    /// Whole blocks of ggml's format of that name, which are copied and not quantised again.
    Blocks(&'a [u8]),
}

/// The rows of a matrix, one an output. Threads read them in any order, each some inputs at a time.
pub(crate) trait MatrixRows: Sync {
    /// The inputs `inputs` of `output`. They begin at a multiple of [`READ_INPUTS`], and end at one or with the row.
    /// Numbers that must be decoded first are put into `buffer`.
    fn read<'a>(
        &'a self,
        output: usize,
        inputs: Range<usize>,
        buffer: &'a mut Vec<f32>,
    ) -> RowPart<'a>;
}

/// Inputs of a row that are read at once: 32 rows of so many, packed, stay in the innermost cache. A multiple of the
/// numbers in a block of any format.
pub(crate) const READ_INPUTS: usize = 512;

/// Numbers in memory, `(outputs, inputs)`.
pub(super) struct GivenRows<'a> {
    pub(super) weights: &'a [f32],
    pub(super) inputs: usize,
}

impl MatrixRows for GivenRows<'_> {
    fn read<'a>(&'a self, output: usize, inputs: Range<usize>, _: &'a mut Vec<f32>) -> RowPart<'a> {
        RowPart::Numbers(&self.weights[output * self.inputs..][..self.inputs][inputs])
    }
}

/// ggml's blocks in memory, `(outputs, inputs)`.
pub(super) struct GivenBlocks<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes of a row.
    pub(super) row: usize,
    /// Numbers and bytes of a block.
    pub(super) block: (usize, usize),
}

impl MatrixRows for GivenBlocks<'_> {
    fn read<'a>(&'a self, output: usize, inputs: Range<usize>, _: &'a mut Vec<f32>) -> RowPart<'a> {
        let (numbers, bytes) = self.block;
        let range = inputs.start / numbers * bytes..inputs.end / numbers * bytes;
        RowPart::Blocks(&self.bytes[output * self.row..][..self.row][range])
    }
}
