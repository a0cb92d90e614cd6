//! Keys and values of one sequence, on the device, and what memory those of all sequences take.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use candle_core::{DType, Device, Result, Tensor};
use speculation::ports::{KvCache, KvMemory};

use crate::config::ModelConfig;

/// State of one sequence of a [`super::DeviceModel`].
///
/// Clones share their memory until one of them is written to.
#[derive(Clone, Debug)]
pub struct DeviceCache {
    block: Arc<CacheTensors>,
    shape: CacheShape,
    device: Device,
    memory: CacheMemory,
    len: usize,
    /// Slots below which anything was ever written to the block; the others are zeros.
    written: usize,
    /// Where the tree begins that is held, if there is one: nobody has chosen a path of it.
    tree_from: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct CacheShape {
    layers: usize,
    kv_heads: usize,
    head_dim: usize,
    dtype: DType,
}

/// Keys and values of all layers, with room for `capacity` slots.
#[derive(Debug)]
struct CacheTensors {
    layers: Vec<DeviceLayerCache>,
    capacity: usize,
    _pages: HeldPages,
}

/// Keys and values of one layer, each `(kv_heads, capacity, head_dim)`. A token's slot is its position,
/// but for those of a tree, which stand in the order they came in. Slots behind the sequence's length are
/// zeros, or left over from a truncation.
#[derive(Debug)]
pub(super) struct DeviceLayerCache {
    pub(super) keys: Tensor,
    pub(super) values: Tensor,
}

impl DeviceCache {
    pub(super) fn new(
        config: &ModelConfig,
        dtype: DType,
        device: &Device,
        memory: &CacheMemory,
    ) -> Self {
        Self {
            block: Arc::new(CacheTensors::empty(memory)),
            shape: CacheShape {
                layers: config.layers,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
                dtype,
            },
            device: device.clone(),
            memory: memory.clone(),
            len: 0,
            written: 0,
            tree_from: None,
        }
    }

    /// Bytes of a page, in all layers of a model of `config`.
    pub(super) fn page_bytes(config: &ModelConfig, dtype: DType) -> usize {
        let numbers = 2 * config.layers * config.kv_heads * config.head_dim * PAGE;
        numbers * dtype.size_in_bytes()
    }

    /// Makes room for slots below `len` that no other cache shares. They count as written from now on.
    pub(super) fn reserve(&mut self, len: usize) -> Result<()> {
        let capacity = self.grown(len);
        if capacity > self.block.capacity || self.is_shared() {
            self.block = Arc::new(self.copy(capacity)?);
        }
        self.written = self.written.max(len);
        Ok(())
    }

    /// The capacity that room for `len` slots takes, in whole pages. Growing copies everything; once in 64
    /// tokens, each of which reads everything, that is little.
    fn grown(&self, len: usize) -> usize {
        len.next_multiple_of(PAGE).max(self.block.capacity)
    }

    /// Whether another cache reads the same memory.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.block) > 1
    }

    /// A block of `capacity` slots with what is held in those it has in common with this cache's.
    fn copy(&self, capacity: usize) -> Result<CacheTensors> {
        let shape = (self.shape.kv_heads, capacity, self.shape.head_dim);
        let common = capacity.min(self.block.capacity);
        let copy = |index: usize, part: fn(&DeviceLayerCache) -> &Tensor| -> Result<Tensor> {
            let copy = Tensor::zeros(shape, self.shape.dtype, &self.device)?;
            if let Some(layer) = self.block.layers.get(index) {
                let held = part(layer).narrow(1, 0, common)?.contiguous()?;
                copy.slice_set(&held, 1, 0)?;
            }
            Ok(copy)
        };
        let layer = |index| {
            Ok(DeviceLayerCache {
                keys: copy(index, |layer| &layer.keys)?,
                values: copy(index, |layer| &layer.values)?,
            })
        };
        Ok(CacheTensors {
            layers: (0..self.shape.layers).map(layer).collect::<Result<_>>()?,
            capacity,
            _pages: self.memory.hold(capacity / PAGE),
        })
    }

    /// Slots there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.block.capacity
    }

    /// Slots behind which the block holds zeros; before them may stand what a truncation or a failed forward left
    /// over.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    pub(super) fn layer(&self, index: usize) -> &DeviceLayerCache {
        &self.block.layers[index]
    }

    /// Declares the slots below `len` written, in every layer; those from `tree_from` on form a tree.
    pub(super) fn set_len(&mut self, len: usize, tree_from: Option<usize>) {
        self.len = len;
        self.tree_from = tree_from;
    }

    /// Where the tree begins that is held, if there is one.
    pub(super) fn tree_from(&self) -> Option<usize> {
        self.tree_from
    }

    /// Moves the slots `from + nodes[i]` to `from + i`.
    fn gather(&mut self, from: usize, nodes: &[u32]) -> Result<()> {
        self.reserve(self.len)?;
        let slots: Vec<u32> = nodes.iter().map(|node| from as u32 + node).collect();
        let slots = Tensor::new(slots, &self.device)?;
        for layer in &self.block.layers {
            for part in [&layer.keys, &layer.values] {
                part.slice_set(&part.index_select(&slots, 1)?, 1, from)?;
            }
        }
        Ok(())
    }
}

impl CacheTensors {
    /// Room for nothing.
    fn empty(memory: &CacheMemory) -> Self {
        Self {
            layers: Vec::new(),
            capacity: 0,
            _pages: memory.hold(0),
        }
    }
}

impl DeviceLayerCache {
    /// Writes `keys` and `values`, each `(rows, kv_heads, head_dim)`, to the slots from `slot` on.
    pub(super) fn write(&self, slot: usize, keys: &Tensor, values: &Tensor) -> Result<()> {
        for (cache, rows) in [(&self.keys, keys), (&self.values, values)] {
            cache.slice_set(&rows.transpose(0, 1)?.contiguous()?, 1, slot)?;
        }
        Ok(())
    }
}

impl KvCache for DeviceCache {
    fn len(&self) -> usize {
        self.len
    }

    /// The memory stays, for what comes next; of an empty sequence it goes back.
    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.tree_from.take_if(|from| len <= *from);
        if self.len == 0 && self.block.capacity > 0 {
            self.block = Arc::new(CacheTensors::empty(&self.memory));
            self.written = 0;
        }
    }

    fn keep(&mut self, from: usize, path: &[u32], rest: &[u32]) {
        let nodes = [path, rest].concat();
        for (to, &node) in (from..).zip(&nodes) {
            let slot = from + node as usize;
            assert!(
                to <= slot && slot < self.len,
                "node {node} of a tree from {from} on cannot be kept at {to}, the cache holds {}",
                self.len
            );
        }
        let moves = (0..).zip(&nodes).any(|(to, &node)| to != node);
        let kept = match moves.then(|| self.gather(from, &nodes)) {
            None | Some(Ok(())) => nodes.len(),
            Some(Err(error)) => {
                // The port allows it; the tokens are then forwarded again.
                tracing::warn!(%error, "a path could not be moved on the device and is forgotten");
                0
            }
        };
        self.tree_from = (kept > path.len()).then_some(from + path.len());
        self.truncate(from + kept);
    }

    fn pages(&self) -> usize {
        self.block.capacity / PAGE
    }

    fn pages_for(&self, more: usize, _at_once: usize) -> usize {
        let pages = self.grown(self.len + more) / PAGE;
        if self.is_shared() {
            pages
        } else {
            pages - self.pages()
        }
    }

    /// Where the other cache has all of the pages it reads the same memory, until one of the two is written to;
    /// that one is then copied. Where it has fewer it gets a copy of these: memory is given back as a whole, so
    /// otherwise a short beginning would keep all that once followed it.
    fn share(&self, len: usize) -> Option<Self> {
        let len = len.min(self.tree_from.unwrap_or(self.len)) / PAGE * PAGE;
        if len == 0 {
            return None;
        }
        let mut shared = self.clone();
        (shared.len, shared.written, shared.tree_from) = (len, len, None);
        if len < self.block.capacity {
            let copy = self.copy(len).inspect_err(|error| {
                tracing::warn!(%error, "there is no memory on the device to share a beginning in");
            });
            shared.block = Arc::new(copy.ok()?);
        }
        Some(shared)
    }
}

/// Slots of a page. A cache grows by whole pages, each in all layers.
const PAGE: usize = 64;

/// Counts the pages of all caches of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct CacheMemory {
    used: Arc<AtomicUsize>,
}

/// Pages held; given back when dropped.
#[derive(Debug)]
struct HeldPages {
    memory: CacheMemory,
    count: usize,
}

impl CacheMemory {
    /// Takes note of `count` pages more.
    fn hold(&self, count: usize) -> HeldPages {
        self.used.fetch_add(count, Ordering::Relaxed);
        HeldPages {
            memory: self.clone(),
            count,
        }
    }

    /// Returns what all caches take now.
    pub(super) fn taken(&self) -> KvMemory {
        KvMemory {
            used_pages: self.used.load(Ordering::Relaxed),
            page_tokens: PAGE,
            pages_a_run: 1,
        }
    }
}

impl Drop for HeldPages {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.count, Ordering::Relaxed);
    }
}
