//! The rows of a forward: the tokens of all segments, one after the other.

use speculation::{
    TokenId,
    ports::{KvCache, Segment},
    tree_paths::TreePaths,
};

use super::cache::DeviceCache;
use crate::{
    config::ModelConfig,
    forward_error::{ForwardError, check_segment},
};

/// What a batch's rows are, and what each of them sees.
#[derive(Debug, Default)]
pub(super) struct BatchRows {
    pub(super) segments: Vec<SegmentRows>,
    pub(super) tokens: Vec<TokenId>,
    /// Logical positions.
    pub(super) positions: Vec<usize>,
    /// Rows whose logits are wanted.
    pub(super) scored: Vec<u32>,
}

/// The rows of one segment.
#[derive(Debug, Default)]
pub(super) struct SegmentRows {
    /// The first of them in the batch.
    pub(super) first: usize,
    /// Their number.
    pub(super) count: usize,
    /// Tokens the cache held before.
    pub(super) held: usize,
    /// Tokens before the tree.
    root: usize,
    tree: TreePaths,
}

impl BatchRows {
    /// Reads the batch and its trees, and refuses what cannot be forwarded.
    pub(super) fn read(
        config: &ModelConfig,
        batch: &[Segment<'_, DeviceCache>],
    ) -> Result<Self, ForwardError> {
        let mut rows = Self::default();
        for segment in batch {
            let mut tree = TreePaths::default();
            check_segment(
                segment,
                segment.cache.tree_from(),
                config.shape(),
                &mut tree,
            )?;
            let read = SegmentRows {
                first: rows.tokens.len(),
                count: segment.tokens.len(),
                held: segment.cache.len(),
                root: segment.root(),
                tree,
            };
            rows.tokens.extend_from_slice(segment.tokens);
            let positions = (0..read.count).map(|row| read.position(row));
            rows.positions.extend(positions);
            let scored = segment.scored_from.min(read.count)..read.count;
            rows.scored
                .extend(scored.map(|row| (read.first + row) as u32));
            rows.segments.push(read);
        }
        Ok(rows)
    }

    /// Declares the rows written to the caches.
    pub(super) fn written(&self, batch: &mut [Segment<'_, DeviceCache>]) {
        for (segment, rows) in batch.iter_mut().zip(&self.segments) {
            let tree_from = (!rows.tree.is_empty()).then_some(rows.root);
            segment.cache.set_len(rows.slots(), tree_from);
        }
    }
}

impl SegmentRows {
    /// Slots of the cache once the rows are written.
    pub(super) fn slots(&self) -> usize {
        self.held + self.count
    }

    /// Returns what row `row` sees: a number of slots from the first on, which are positions, and after them the nodes
    /// of a path.
    fn seen(&self, row: usize) -> (usize, &[u32]) {
        match (self.held + row).checked_sub(self.root) {
            Some(node) if !self.tree.is_empty() => (self.root, self.tree.path(node)),
            _ => (self.held + row + 1, &[]),
        }
    }

    /// Logical position of row `row`.
    fn position(&self, row: usize) -> usize {
        let (plain, path) = self.seen(row);
        plain + path.len() - 1
    }

    /// Sets `mask`, one number a slot, to 0 for the last `window` positions that row `row` sees.
    pub(super) fn unmask(&self, row: usize, window: Option<usize>, mask: &mut [f32]) {
        let (plain, path) = self.seen(row);
        let from = window.map_or(0, |window| (plain + path.len()).saturating_sub(window));
        mask[from.min(plain)..plain].fill(0.0);
        for (position, &node) in (plain..).zip(path) {
            if position >= from {
                mask[plain + node as usize] = 0.0;
            }
        }
    }
}
