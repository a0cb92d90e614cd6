//! Attention of a ragged batch, as few products of equal shape.
//!
//! The rows of a segment attend to its cache and to nothing else. Segments with about as many rows and
//! about as many slots are padded to the largest of them and computed together; a mask says which slots
//! a row sees: the sequence up to itself, of a tree its ancestors alone, and in layers with a window the
//! last positions of these.

use std::{collections::BTreeMap, ops::Range};

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use super::{
    cache::DeviceLayerCache,
    rows::{BatchRows, SegmentRows},
};
use crate::config::ModelConfig;

/// Most scores computed at a time: 128 MiB of them, and as much again for each step of the softmax.
pub(super) const MAX_SCORES: usize = 32 << 20;

/// How the rows of a batch are brought together, the same in every layer.
#[derive(Debug)]
pub(super) struct AttentionPlan {
    groups: Vec<Group>,
    /// Where each row of the batch stands in the groups' results.
    order: Selection,
}

/// Pieces of about one size.
#[derive(Debug)]
struct Group {
    /// The segments of the pieces.
    segments: Vec<usize>,
    /// Rows of a piece, padding included.
    width: usize,
    /// Slots attended to, padding included.
    slots: usize,
    /// Of each piece the slots behind those it sees that may not be zeros.
    stale: Vec<Range<usize>>,
    /// The pieces' rows, in the batch.
    rows: Selection,
    /// `(pieces, 1, width, slots)`: 0 or -infinity, for layers that see everything and for those
    /// with a window; none where no row is barred from any slot.
    masks: [Option<Tensor>; 2],
}

/// Rows of one segment that attend together.
#[derive(Clone, Copy, Debug)]
struct SegmentPiece {
    segment: usize,
    /// First row within the segment.
    first: usize,
    count: usize,
}

/// Slots of a segment's keys and values.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheRoom {
    /// All of them.
    pub(super) capacity: usize,
    /// Slots behind which all are zeros.
    pub(super) written: usize,
}

/// Rows of a tensor; none given: all, as they are.
#[derive(Debug)]
pub(super) struct Selection(Option<Tensor>);

/// Sizes and constants of a layer's attention.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttentionHeads {
    /// Number of query heads.
    pub(super) query: usize,
    /// Number of key and value heads.
    pub(super) key_value: usize,
    /// Dimensions of a head.
    pub(super) head_dim: usize,
    /// Scores s become c tanh(s / c).
    pub(super) softcap: Option<f32>,
    /// Whether the layer has a window.
    pub(super) windowed: bool,
}

impl Selection {
    /// The rows `rows` of a tensor of `of` rows.
    pub(super) fn new(rows: &[u32], of: usize, device: &Device) -> Result<Self> {
        let all = rows.len() == of && (0..).zip(rows).all(|(i, &row)| i == row);
        let rows = (!all).then(|| Tensor::from_slice(rows, rows.len(), device));
        rows.transpose().map(Self)
    }

    pub(super) fn of(&self, x: &Tensor) -> Result<Tensor> {
        match &self.0 {
            Some(rows) => x.index_select(rows, 0),
            None => Ok(x.clone()),
        }
    }
}

impl AttentionPlan {
    /// `rooms` are those of the segments' caches; no more than `max_scores` scores are computed at a time, but for
    /// a single row.
    pub(super) fn new(
        config: &ModelConfig,
        rows: &BatchRows,
        rooms: &[CacheRoom],
        max_scores: usize,
        device: &Device,
    ) -> Result<Self> {
        let mut classes: BTreeMap<_, Vec<SegmentPiece>> = BTreeMap::new();
        for (segment, read) in rows.segments.iter().enumerate() {
            let at_once = (max_scores / (config.heads * read.slots().max(1))).max(1);
            for first in (0..read.count).step_by(at_once) {
                let count = at_once.min(read.count - first);
                let piece = SegmentPiece {
                    segment,
                    first,
                    count,
                };
                // Padding at most doubles either side.
                let class = (count.next_power_of_two(), read.slots().next_power_of_two());
                classes.entry(class).or_default().push(piece);
            }
        }
        let mut order = vec![0; rows.tokens.len()];
        let mut groups = Vec::new();
        let mut before = 0;
        for pieces in classes.into_values() {
            let width = pieces.iter().map(|piece| piece.count).max().unwrap_or(0);
            let slots = pieces.iter().map(|piece| rooms[piece.segment].capacity);
            let scores = config.heads * width * slots.max().unwrap_or(0);
            for pieces in pieces.chunks((max_scores / scores.max(1)).max(1)) {
                for (i, piece) in pieces.iter().enumerate() {
                    let row = rows.segments[piece.segment].first + piece.first;
                    for (to, row) in (before + i * width..).zip(row..row + piece.count) {
                        order[row] = to as u32;
                    }
                }
                before += pieces.len() * width;
                groups.push(Group::new(config, rows, pieces, width, rooms, device)?);
            }
        }
        Ok(Self {
            groups,
            order: Selection::new(&order, before, device)?,
        })
    }

    /// For each group its segments, rows a segment, and slots, padding included.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let size = |group: &Group| (group.segments.len(), group.width, group.slots);
        self.groups.iter().map(size)
    }

    /// Attends with `query`, `(rows, heads * head_dim)` and already scaled, to the caches of the segments,
    /// the rows' own keys and values included. Returns the mixed values, `(rows, heads * head_dim)`.
    pub(super) fn attend(
        &self,
        query: &Tensor,
        caches: &[&DeviceLayerCache],
        heads: AttentionHeads,
    ) -> Result<Tensor> {
        let outputs = self
            .groups
            .iter()
            .map(|group| group.attend(query, caches, heads))
            .collect::<Result<Vec<_>>>()?;
        self.order.of(&Tensor::cat(&outputs, 0)?)
    }
}

impl Group {
    fn new(
        config: &ModelConfig,
        rows: &BatchRows,
        pieces: &[SegmentPiece],
        width: usize,
        rooms: &[CacheRoom],
        device: &Device,
    ) -> Result<Self> {
        let of = |piece: &SegmentPiece| &rows.segments[piece.segment];
        let seen = |piece: &SegmentPiece| of(piece).held + piece.first + piece.count;
        let slots = if let [piece] = pieces {
            // Read where they are.
            seen(piece)
        } else {
            let capacities = pieces.iter().map(|piece| rooms[piece.segment].capacity);
            capacities.max().unwrap_or(0)
        };
        let stale = |piece: &SegmentPiece| seen(piece)..rooms[piece.segment].written;
        let mut selected = Vec::with_capacity(pieces.len() * width);
        for piece in pieces {
            // Padding is computed and thrown away; any row will do.
            let row = |i: usize| of(piece).first + piece.first + i.min(piece.count - 1);
            selected.extend((0..width).map(|i| row(i) as u32));
        }
        let mask = |window| mask(of, pieces, width, slots, window, device);
        let windowed = config.windowed.contains(&true);
        Ok(Self {
            segments: pieces.iter().map(|piece| piece.segment).collect(),
            width,
            slots,
            stale: pieces.iter().map(stale).collect(),
            rows: Selection::new(&selected, rows.tokens.len(), device)?,
            masks: [
                mask(None)?,
                if windowed { mask(config.window)? } else { None },
            ],
        })
    }

    fn attend(
        &self,
        query: &Tensor,
        caches: &[&DeviceLayerCache],
        heads: AttentionHeads,
    ) -> Result<Tensor> {
        let (pieces, width, slots) = (self.segments.len(), self.width, self.slots);
        let (kv_heads, head_dim) = (heads.key_value, heads.head_dim);
        let group = heads.query / kv_heads;
        // (pieces * kv_heads, group * width, head_dim)
        let query = self
            .rows
            .of(query)?
            .reshape((pieces, width, kv_heads, group, head_dim))?
            .permute((0, 2, 3, 1, 4))?
            .contiguous()?
            .reshape((pieces * kv_heads, group * width, head_dim))?;
        let keys = self.padded(caches, |cache| &cache.keys)?;
        let mut scores = query.matmul(&keys.t()?)?.to_dtype(DType::F32)?;
        if let Some(cap) = heads.softcap {
            let cap = f64::from(cap);
            scores = ((scores / cap)?.tanh()? * cap)?;
        }
        if let Some(mask) = &self.masks[usize::from(heads.windowed)] {
            scores = scores
                .reshape((pieces, heads.query, width, slots))?
                .broadcast_add(mask)?
                .reshape((pieces * kv_heads, group * width, slots))?;
        }
        let weights = softmax_last_dim(&scores)?.to_dtype(query.dtype())?;
        weights
            .matmul(&self.padded(caches, |cache| &cache.values)?)?
            .reshape((pieces, kv_heads, group, width, head_dim))?
            .permute((0, 3, 1, 2, 4))?
            .contiguous()?
            .reshape((pieces * width, heads.query * head_dim))
    }

    /// Keys or values of the pieces' caches, `(pieces * kv_heads, slots, head_dim)`. What no row of a piece sees
    /// is zeros: a mask does not keep away what is no number.
    fn padded(
        &self,
        caches: &[&DeviceLayerCache],
        part: impl Fn(&DeviceLayerCache) -> &Tensor,
    ) -> Result<Tensor> {
        if let [segment] = self.segments[..] {
            return part(caches[segment]).narrow(1, 0, self.slots);
        }
        let first = part(caches[self.segments[0]]);
        let (kv_heads, _, head_dim) = first.dims3()?;
        let shape = (self.segments.len() * kv_heads, self.slots, head_dim);
        let padded = Tensor::zeros(shape, first.dtype(), first.device())?;
        for (i, (&segment, stale)) in self.segments.iter().zip(&self.stale).enumerate() {
            let own = padded.narrow(0, i * kv_heads, kv_heads)?;
            own.slice_set(part(caches[segment]), 1, 0)?;
            if !stale.is_empty() {
                let shape = (kv_heads, stale.len(), head_dim);
                let zeros = Tensor::zeros(shape, first.dtype(), first.device())?;
                own.slice_set(&zeros, 1, stale.start)?;
            }
        }
        Ok(padded)
    }
}

/// The mask of a group, none if it would bar no row from any slot.
fn mask<'a>(
    of: impl Fn(&SegmentPiece) -> &'a SegmentRows,
    pieces: &[SegmentPiece],
    width: usize,
    slots: usize,
    window: Option<usize>,
    device: &Device,
) -> Result<Option<Tensor>> {
    let mut mask = vec![f32::NEG_INFINITY; pieces.len() * width * slots];
    for (piece, mask) in pieces.iter().zip(mask.chunks_exact_mut(width * slots)) {
        for (i, mask) in mask.chunks_exact_mut(slots).enumerate() {
            if i < piece.count {
                of(piece).unmask(piece.first + i, window, mask);
            } else {
                mask.fill(0.0);
            }
        }
    }
    let bars = mask.iter().any(|number| *number != 0.0);
    let shape = (pieces.len(), 1, width, slots);
    bars.then(|| Tensor::from_vec(mask, shape, device))
        .transpose()
}
