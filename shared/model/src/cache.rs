//! Keys and values of one sequence.

use speculation::ports::KvCache;

/// Slots whose keys stand interleaved.
pub(crate) const LANES: usize = 16;
/// Slots by which a cache grows.
const STEP: usize = 64;

/// State of one sequence of a [`crate::Llama`].
#[derive(Clone, Debug)]
pub struct LlamaCache {
    pub(crate) layers: Vec<LayerCache>,
    len: usize,
    /// Where a tree begins that nobody has chosen a path of.
    tree_from: Option<usize>,
}

/// Keys and values of one layer, by slot. A token's slot is its position, but for those of a tree: they
/// stand in the order they came in, and their keys are rotated to their depth. So slots may outnumber
/// the positions of the model's context. What lies behind the sequence's length is left over from a
/// truncation, and never read before it is overwritten.
#[derive(Clone, Debug)]
pub(crate) struct LayerCache {
    /// `(slots / 16, kv_heads, head_dim, 16)`: sixteen scores are computed side by side.
    keys: Vec<[f32; LANES]>,
    /// `(slots, kv_heads, head_dim)`.
    values: Vec<f32>,
    kv_heads: usize,
    head_dim: usize,
}

impl LlamaCache {
    pub(crate) fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Self {
        let layer = LayerCache {
            keys: Vec::new(),
            values: Vec::new(),
            kv_heads,
            head_dim,
        };
        Self {
            layers: vec![layer; layers],
            len: 0,
            tree_from: None,
        }
    }

    /// Makes room for slots below `len`.
    pub(crate) fn reserve(&mut self, len: usize) {
        let capacity = len.next_multiple_of(STEP);
        for layer in &mut self.layers {
            let width = layer.kv_heads * layer.head_dim;
            if layer.values.len() < capacity * width {
                layer.values.resize(capacity * width, 0.0);
                layer.keys.resize(capacity / LANES * width, [0.0; LANES]);
            }
        }
    }

    /// Declares the slots below `len` written, in every layer; those from `tree_from` on form a tree.
    pub(crate) fn set_len(&mut self, len: usize, tree_from: Option<usize>) {
        self.len = len;
        self.tree_from = tree_from;
    }

    /// Where a tree begins that must be taken away before anything is appended.
    pub(crate) fn tree_from(&self) -> Option<usize> {
        self.tree_from
    }
}

impl KvCache for LlamaCache {
    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.tree_from.take_if(|from| len <= *from);
    }

    fn keep(&mut self, from: usize, path: &[u32]) {
        for (to, &node) in (from..).zip(path) {
            let slot = from + node as usize;
            assert!(
                to <= slot && slot < self.len,
                "node {node} of a tree from {from} on cannot be kept at {to}, the cache holds {}",
                self.len
            );
            if slot != to {
                for layer in &mut self.layers {
                    layer.copy(slot, to);
                }
            }
        }
        self.len = self.len.min(from + path.len());
        self.tree_from.take_if(|tree| from <= *tree);
    }
}

impl LayerCache {
    /// Writes key and value of `slot`, each `(kv_heads, head_dim)`.
    pub(crate) fn write(&mut self, slot: usize, key: &[f32], value: &[f32]) {
        let width = self.kv_heads * self.head_dim;
        let block = &mut self.keys[slot / LANES * width..][..width];
        for (lanes, &key) in block.iter_mut().zip(key) {
            lanes[slot % LANES] = key;
        }
        self.values[slot * width..][..width].copy_from_slice(value);
    }

    /// Copies key and value of slot `from` to slot `to`.
    fn copy(&mut self, from: usize, to: usize) {
        let width = self.kv_heads * self.head_dim;
        let blocks = [from, to].map(|slot| slot / LANES * width);
        for i in 0..width {
            let key = self.keys[blocks[0] + i][from % LANES];
            self.keys[blocks[1] + i][to % LANES] = key;
        }
        self.values
            .copy_within(from * width..(from + 1) * width, to * width);
    }

    /// Keys of `kv_head` at slots `16 * block..16 * block + 16`, `(head_dim, 16)`.
    #[inline(always)]
    pub(crate) fn keys(&self, block: usize, kv_head: usize) -> &[[f32; LANES]] {
        &self.keys[(block * self.kv_heads + kv_head) * self.head_dim..][..self.head_dim]
    }

    /// Values of `kv_head` from the first slot on: every `stride` numbers `head_dim` of them
    /// are one slot's. Returns (values, stride).
    #[inline(always)]
    pub(crate) fn values(&self, kv_head: usize) -> (&[f32], usize) {
        (
            &self.values[kv_head * self.head_dim..],
            self.kv_heads * self.head_dim,
        )
    }

    #[inline(always)]
    pub(crate) fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    #[inline(always)]
    pub(crate) fn head_dim(&self) -> usize {
        self.head_dim
    }
}
