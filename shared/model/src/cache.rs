//! Keys and values of one sequence, in pages.
//!
//! Each layer holds its own pages, all of one size and from one pool, so that a layer with a sliding
//! window can give back those that have left it. Growing takes pages and never moves what is held. A
//! clone of a cache shares its pages until one of the two writes.

mod blocks;
mod heads;
mod held;
mod layer;
mod page;

use std::sync::Arc;

use derive_more::From;
use speculation::ports::{KvCache, KvMemory};
use thiserror::Error;

use self::{
    blocks::{BLOCK_BYTES, blocks_of},
    layer::UNCOMMITTED,
};
pub(crate) use self::{
    blocks::{KeyBlock, PageBlocks, Quads, VALUE_LANES, ValueBlock},
    held::{KvNumber, PageFormat, PageNumbers},
    layer::LayerCache,
    page::{LANES, PAGE, PagePool},
};
use crate::free_memory;
use crate::linear::WeightFormat;

/// How much of the machine's free memory is for keys and values of one service: two fifths, so that two services on
/// one machine leave a fifth to forwards and other programs.
const SHARE: (u64, u64) = (2, 5);

/// State of one sequence of a [`crate::Model`].
#[derive(Clone, Debug)]
pub struct CpuCache {
    pub(crate) layers: Vec<LayerCache>,
    len: usize,
    /// Where the tree begins that is held, if there is one: nobody has chosen a path of it.
    tree_from: Option<usize>,
    /// Key and value of a token on the move, reused.
    moving: Vec<f32>,
    /// Of an encoder-decoder model, what the tokens see of the source: keys and values in every decoder layer,
    /// made once and shared by the copies of a sequence. Truncation leaves it alone.
    cross: Option<Arc<Self>>,
}

impl CpuCache {
    /// The state of an empty sequence; `windows` names for each layer the most positions seen.
    pub(crate) fn new(
        pool: &Arc<PagePool>,
        windows: impl IntoIterator<Item = Option<usize>>,
    ) -> Self {
        Self {
            layers: windows
                .into_iter()
                .map(|window| LayerCache::new(pool, window))
                .collect(),
            len: 0,
            tree_from: None,
            moving: Vec::new(),
            cross: None,
        }
    }

    /// Makes room for slots below `len`.
    pub(crate) fn reserve(&mut self, len: usize) {
        for layer in &mut self.layers {
            layer.reserve(self.len, len);
        }
    }

    /// Declares the slots below `len` written, in every layer; those from `tree_from` on form a tree.
    /// Layers with a window let go what neither they nor any truncation to before this forward or the tree, or of the
    /// last 128 tokens, will see again.
    pub(crate) fn set_len(&mut self, len: usize, tree_from: Option<usize>) {
        let before = tree_from.map_or(self.len, |from| from.min(self.len));
        let keeps = before.min(len.saturating_sub(UNCOMMITTED));
        for layer in &mut self.layers {
            layer.give_back(keeps);
        }
        self.len = len;
        self.tree_from = tree_from;
    }

    /// The source that the sequence's tokens are written from, if it was encoded: its slots are the positions.
    pub(crate) fn cross(&self) -> Option<&Self> {
        self.cross.as_deref()
    }

    /// Forgets every token, and takes another source.
    pub(crate) fn set_cross(&mut self, cross: Self) {
        self.truncate(0);
        self.cross = Some(Arc::new(cross));
    }

    /// Where the tree begins that is held, if there is one.
    pub(crate) fn tree_from(&self) -> Option<usize> {
        self.tree_from
    }
}

/// Returns what the caches of a model with `layers` layers take of `pool`.
pub(crate) fn memory(pool: &PagePool, layers: usize) -> KvMemory {
    KvMemory {
        used_pages: pool.used(),
        page_tokens: PAGE,
        pages_a_run: layers,
    }
}

/// Pages that caches may take of the machine's free memory; none if the system does not tell how much that is.
pub(crate) fn free_pages(pool: &PagePool) -> Option<usize> {
    let bytes = free_memory::free_bytes()? / SHARE.1 * SHARE.0;
    Some(bytes as usize / pool.page_bytes().max(1))
}

impl KvCache for CpuCache {
    fn len(&self) -> usize {
        self.len
    }

    /// Layers with a window hold no more than it, the tokens of the last forward, and the last 128. A
    /// truncation to before that forgets the whole sequence.
    fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let holds_windows = self.layers.iter().all(|layer| layer.can_truncate(len));
        self.len = if holds_windows { len } else { 0 };
        self.tree_from.take_if(|from| self.len <= *from);
        for layer in &mut self.layers {
            layer.truncate(self.len);
        }
    }

    fn keep(&mut self, from: usize, path: &[u32], rest: &[u32]) {
        for (to, &node) in (from..).zip(path.iter().chain(rest)) {
            let slot = from + node as usize;
            assert!(
                to <= slot && slot < self.len,
                "node {node} of a tree from {from} on cannot be kept at {to}, the cache holds {}",
                self.len
            );
            if slot != to {
                for layer in &mut self.layers {
                    layer.copy(slot, to, &mut self.moving);
                }
            }
        }
        let root = from + path.len();
        self.tree_from = (!rest.is_empty()).then_some(root);
        self.truncate(root + rest.len());
    }

    fn pages(&self) -> usize {
        self.layers.iter().map(LayerCache::pages).sum()
    }

    fn pages_for(&self, more: usize, at_once: usize) -> usize {
        let (from, to) = (self.len, self.len + more);
        let layers = self.layers.iter();
        layers.map(|layer| layer.pages_for(from, to, at_once)).sum()
    }

    fn share(&self, len: usize) -> Option<Self> {
        // What a decoder with an encoder holds is of one source, whatever its tokens.
        if self.cross.is_some() {
            return None;
        }
        let mut shared = self.clone();
        shared.truncate(len.min(self.tree_from.unwrap_or(self.len)) / PAGE * PAGE);
        (!shared.is_empty()).then_some(shared)
    }
}

/// How keys and values are held on a CPU. What is computed with them is f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
#[strum(parse_err_ty = UnknownKvFormat, parse_err_fn = UnknownKvFormat::from)]
pub enum KvFormat {
    /// 8-bit blocks of 32 with a half-precision scale: little more than half of what [`KvFormat::F16`] takes. What
    /// stands in a block with a number that is not finite, or from 8,321,040 on, becomes NaN.
    Q8_0,
    /// Half precision, 11 bits: half the memory, and half of what the attention of a long sequence reads.
    /// Numbers from 65,520 on become NaN, so that what is computed with them is not taken for a result.
    F16,
    /// Single precision.
    F32,
}

impl KvFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Q8_0, Self::F16, Self::F32];

    /// The smallest format that adds next to nothing to what `weights` lose: beside quantised ones
    /// activations have 8 bits.
    pub fn beside(weights: WeightFormat) -> Self {
        match weights {
            WeightFormat::F32 => Self::F32,
            WeightFormat::Q8_0 | WeightFormat::Q4_K => Self::F16,
        }
    }

    /// Size in bytes of a head's key, or of its value: `head_dim` numbers, with what belongs to them.
    pub fn head_bytes(self, head_dim: usize) -> usize {
        match self {
            Self::Q8_0 => blocks_of(head_dim) * BLOCK_BYTES,
            Self::F16 => 2 * head_dim,
            Self::F32 => 4 * head_dim,
        }
    }
}

/// No format of keys and values has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error, From)]
#[from(&str)]
#[error("no format {0:?} of keys and values: auto, q8_0, f16 and f32 are known")]
pub struct UnknownKvFormat(pub String);

#[cfg(test)]
mod tests;
