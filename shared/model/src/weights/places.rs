//! Where a tensor stands in a file, and how, if not as a model computes with it.

use std::ops::Range;

/// Where the rows of a tensor lie in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    /// The other tensor's name.
    pub(crate) of: String,
    /// The rows of it.
    pub(crate) rows: Range<usize>,
    /// How many it has.
    pub(crate) total: usize,
}

/// How a tensor's contents in the file differ from what a model computes with, which is as in most Hugging Face
/// checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorLayout {
    /// Not at all.
    Same,
    /// Rows of a head stand in the order in which llama.cpp rotates them for the Llama family, and GLM-4 anywhere: a
    /// dimension beside the one it is paired with.
    RotaryPairs {
        /// Heads the rows belong to.
        heads: usize,
        /// Dimensions of a head that rotate, its first ones.
        dims: usize,
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
    pub(crate) layout: TensorLayout,
}

/// The row of a model that stands at row `row` of the file, `rows` being those of all `heads`, of each of which `dims`
/// dimensions rotate.
///
/// The model pairs dimension i of a head with i + dims / 2; the file has them side by side.
pub(crate) fn rotary_source(row: usize, rows: usize, heads: usize, dims: usize) -> usize {
    let head_dim = rows / heads;
    let within = row % head_dim;
    if within >= dims {
        return row;
    }
    row - within + within % 2 * (dims / 2) + within / 2
}

/// The row of the file at which the row `row` of the model stands: the inverse of [`rotary_source`].
pub(super) fn rotary_place(row: usize, rows: usize, heads: usize, dims: usize) -> usize {
    let head_dim = rows / heads;
    let (within, half) = (row % head_dim, dims / 2);
    if within >= dims {
        return row;
    }
    row - within + within % half * 2 + within / half
}
