//! The heads of a layer: norms of queries and keys, and what the rows of a batch see.

use speculation::ports::{KvCache, Segment};
use speculation::simd::Level;
use speculation::tree_paths::TreePaths;

use super::{
    loading::LayerWeights,
    tensors::LayerPart::{KeyNorm, QueryNorm},
};
use crate::{
    attention::{View, Views},
    cache::{CpuCache, LayerCache},
    cpu::SharedSlice,
    norm::RmsNorm,
    rope::Rotary,
    weights::WeightsError,
};

/// Norms of queries and keys.
#[derive(Clone, Debug)]
pub(super) struct HeadNorms {
    query: RmsNorm,
    key: RmsNorm,
    /// Whether they are over all heads at once, and not over each.
    whole: bool,
}

impl HeadNorms {
    /// Loads those of a layer, if models of this kind have them.
    pub(super) fn load(weights: &LayerWeights<'_>) -> Result<Option<Self>, WeightsError> {
        let query = weights.optional_norm(QueryNorm)?;
        let key = weights.optional_norm(KeyNorm)?;
        let whole = weights.config.qk_norm_whole;
        let both = query.zip(key);
        Ok(both.map(|(query, key)| Self { query, key, whole }))
    }

    /// Normalises queries and keys if that is over all heads, in rows of `query_dim` numbers of queries, and `kv_dim` of
    /// keys and of values.
    pub(super) fn over_all(
        &self,
        level: Level,
        qkv: &mut [f32],
        (query_dim, kv_dim): (usize, usize),
    ) {
        if !self.whole {
            return;
        }
        for row in qkv.chunks_exact_mut(query_dim + 2 * kv_dim) {
            let (query, rest) = row.split_at_mut(query_dim);
            self.query.forward_in_place(level, query);
            self.key.forward_in_place(level, &mut rest[..kv_dim]);
        }
    }

    /// Normalises the heads of `query` and `key` if that is over each.
    fn over_each(&self, level: Level, query: &mut [f32], key: &mut [f32]) {
        if !self.whole {
            self.query.forward_in_place(level, query);
            self.key.forward_in_place(level, key);
        }
    }
}

/// What the projections of a layer gave, and what the rows of the batch see of it and of what was before.
pub(super) struct LayerHeads<'a, 'b> {
    pub(super) batch: &'a [Segment<'b, CpuCache>],
    pub(super) trees: &'a [TreePaths],
    /// Norms of queries and keys, if there are.
    pub(super) norms: Option<&'a HeadNorms>,
    /// Numbers of a row's queries, and of its keys.
    pub(super) dims: (usize, usize),
    /// Index of the layer.
    pub(super) index: usize,
    pub(super) level: Level,
    /// None of a layer that does not rotate.
    pub(super) rotary: Option<&'a Rotary>,
    /// Query, key and value of each row: `(rows, query_dim + 2 * kv_dim)`.
    pub(super) qkv: SharedSlice<'a, f32>,
}

impl Views for LayerHeads<'_, '_> {
    fn segments(&self) -> usize {
        self.batch.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.batch[segment].tokens.len()
    }

    fn cache(&self, segment: usize) -> &LayerCache {
        &self.batch[segment].cache.layers[self.index]
    }

    fn view(&self, segment: usize, row: usize) -> View<'_> {
        View::of_row(&self.batch[segment], &self.trees[segment], row)
    }

    /// Normalises and rotates queries and keys where they stand, and writes keys and values to the cache.
    unsafe fn place(&self, segment: usize, first: usize, kv_head: usize) {
        let cache = self.cache(segment);
        let head_dim = cache.head_dim();
        let (query_dim, kv_dim) = self.dims;
        let group_dim = query_dim / cache.kv_heads();
        for row in 0..self.rows(segment) {
            let at = (first + row) * (query_dim + 2 * kv_dim);
            let key = at + query_dim + kv_head * head_dim;
            // SAFETY: this head's alone, which nobody else has, as the caller promises.
            let (query, key, value) = unsafe {
                (
                    self.qkv.range(at + kv_head * group_dim, group_dim),
                    self.qkv.range(key, head_dim),
                    self.qkv.range(key + kv_dim, head_dim),
                )
            };
            if let Some(norms) = self.norms {
                norms.over_each(self.level, query, key);
            }
            let slot = self.batch[segment].cache.len() + row;
            // The row sees its own position last.
            let position = self.view(segment, row).visible - 1;
            if let Some(rotary) = self.rotary {
                rotary.apply(self.level, query, position);
                rotary.apply(self.level, key, position);
            }
            // SAFETY: as above.
            unsafe { cache.write_head(slot, kv_head, key, value) };
        }
    }
}
