//! Queries, keys and values of a batch in one layer: brought to their positions, stored, and seen.

use speculation::ports::{KvCache, Segment};
use speculation::simd::Level;
use speculation::tree_paths::TreePaths;

use crate::{
    attention::{View, Views},
    cache::{LayerCache, SequenceCache},
    cpu::SharedSlice,
    norm::RmsNorm,
    rope::Rotary,
};

/// What the projections of a layer gave, and what the rows of the batch see of it and of what was before.
pub(super) struct Heads<'a, 'b> {
    pub(super) batch: &'a [Segment<'b, SequenceCache>],
    pub(super) trees: &'a [TreePaths],
    /// Index of the layer.
    pub(super) layer: usize,
    pub(super) level: Level,
    pub(super) rotary: &'a Rotary,
    /// Norms of each head's query and key, if there are.
    pub(super) query_norm: Option<&'a RmsNorm>,
    pub(super) key_norm: Option<&'a RmsNorm>,
    pub(super) query_dim: usize,
    pub(super) kv_dim: usize,
    /// Query, key and value of each row: `(rows, query_dim + 2 * kv_dim)`.
    pub(super) qkv: SharedSlice<'a, f32>,
}

impl Views for Heads<'_, '_> {
    fn segments(&self) -> usize {
        self.batch.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.batch[segment].tokens.len()
    }

    fn cache(&self, segment: usize) -> &LayerCache {
        &self.batch[segment].cache.layers[self.layer]
    }

    fn view(&self, segment: usize, row: usize) -> View<'_> {
        View::of_row(&self.batch[segment], &self.trees[segment], row)
    }

    /// Normalises and rotates queries and keys where they stand, and writes keys and values to the cache.
    unsafe fn place(&self, segment: usize, first: usize, kv_head: usize) {
        let cache = self.cache(segment);
        let head_dim = cache.head_dim();
        let group_dim = self.query_dim / cache.kv_heads();
        for row in 0..self.rows(segment) {
            let at = (first + row) * (self.query_dim + 2 * self.kv_dim);
            let key = at + self.query_dim + kv_head * head_dim;
            // SAFETY: this head's alone, which nobody else has, as the caller promises.
            let (query, key, value) = unsafe {
                (
                    self.qkv.range(at + kv_head * group_dim, group_dim),
                    self.qkv.range(key, head_dim),
                    self.qkv.range(key + self.kv_dim, head_dim),
                )
            };
            if let Some(norm) = self.query_norm {
                norm.forward_in_place(self.level, query);
            }
            if let Some(norm) = self.key_norm {
                norm.forward_in_place(self.level, key);
            }
            let (slot, position) = self.slot(segment, row);
            self.rotary.apply(self.level, query, position);
            self.rotary.apply(self.level, key, position);
            // SAFETY: as above.
            unsafe { cache.write_head(slot, kv_head, key, value) };
        }
    }
}

impl Heads<'_, '_> {
    /// Where a row's keys and values go, and its position: what comes after a tree's root is as deep as it is.
    fn slot(&self, segment: usize, row: usize) -> (usize, usize) {
        let tree = &self.trees[segment];
        let segment = &self.batch[segment];
        let (start, trunk) = (segment.cache.len(), segment.trunk());
        let depth = row.checked_sub(trunk).map(|node| tree.path(node).len() - 1);
        let position = depth.map_or(row, |depth| trunk + depth);
        (start + row, start + position)
    }
}
