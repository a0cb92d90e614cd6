//! Tensors of a GGUF file beside those of the Hugging Face checkpoint it was made from.

/// How a tensor's contents in the file differ from the Hugging Face checkpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Not at all.
    Same,
    /// Rows of a head stand in the order in which llama.cpp rotates them for the Llama family: a
    /// dimension beside the one it is paired with.
    RotaryPairs {
        /// Heads the rows belong to.
        heads: usize,
    },
    /// One is added to each weight: Gemma multiplies by 1 + weight, and llama.cpp by what it finds.
    PlusOne,
}

/// A tensor under both names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedTensor {
    pub(crate) hugging_face: String,
    pub(crate) gguf: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) layout: Layout,
}

/// Which row of a checkpoint stands at row `row` of the file, `rows` being those of all `heads`.
///
/// A checkpoint pairs dimension i of a head with i + half; the file has them side by side.
pub(crate) fn rotary_source(row: usize, rows: usize, heads: usize) -> usize {
    let head_dim = rows / heads;
    let (head, within) = (row / head_dim, row % head_dim);
    head * head_dim + within % 2 * (head_dim / 2) + within / 2
}
