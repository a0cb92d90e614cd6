//! What one thread computes at once.

/// The queries of one key head, of some rows of one segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) segment: usize,
    /// First row, counted in its segment.
    pub(super) row: usize,
    pub(super) rows: usize,
    /// First row, counted in the batch.
    pub(super) batch_row: usize,
    pub(super) kv_head: usize,
    /// Query heads of a key head.
    pub(super) group: usize,
    pub(super) head_dim: usize,
    /// Whether the head is to be placed first: this is all of the segment that attends to it.
    pub(super) places: bool,
    /// Multiply-adds, about.
    pub(super) work: usize,
}

impl Item {
    /// Numbers of a row's queries, and of its results.
    pub(super) fn width(&self) -> usize {
        self.group * self.head_dim
    }
}
