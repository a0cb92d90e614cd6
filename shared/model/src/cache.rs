//! Keys and values of one sequence.

use speculation::ports::KvCache;

/// Positions whose keys stand interleaved.
pub(crate) const LANES: usize = 16;
/// Positions by which a cache grows.
const STEP: usize = 64;

/// State of one sequence of a [`crate::Llama`].
#[derive(Clone, Debug)]
pub struct LlamaCache {
    pub(crate) layers: Vec<LayerCache>,
    len: usize,
}

/// Keys and values of one layer. What lies behind the sequence's length is left over from a
/// truncation, and never read before it is overwritten.
#[derive(Clone, Debug)]
pub(crate) struct LayerCache {
    /// `(positions / 16, kv_heads, head_dim, 16)`: sixteen scores are computed side by side.
    keys: Vec<[f32; LANES]>,
    /// `(positions, kv_heads, head_dim)`.
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
        }
    }

    /// Makes room for positions below `len`.
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

    /// Declares the positions below `len` written, in every layer.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len;
    }
}

impl KvCache for LlamaCache {
    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl LayerCache {
    /// Writes key and value of `position`, each `(kv_heads, head_dim)`.
    pub(crate) fn write(&mut self, position: usize, key: &[f32], value: &[f32]) {
        let width = self.kv_heads * self.head_dim;
        let block = &mut self.keys[position / LANES * width..][..width];
        for (lanes, &key) in block.iter_mut().zip(key) {
            lanes[position % LANES] = key;
        }
        self.values[position * width..][..width].copy_from_slice(value);
    }

    /// Keys of `kv_head` at positions `16 * block..16 * block + 16`, `(head_dim, 16)`.
    #[inline(always)]
    pub(crate) fn keys(&self, block: usize, kv_head: usize) -> &[[f32; LANES]] {
        &self.keys[(block * self.kv_heads + kv_head) * self.head_dim..][..self.head_dim]
    }

    /// Values of `kv_head` from the first position on: every `stride` numbers `head_dim` of them
    /// are one position's. Returns (values, stride).
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
