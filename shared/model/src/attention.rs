//! Causal grouped-query attention of the rows of a batch over the caches of their sequences.
//!
//! The positions of a sequence are cut into chunks of [`CHUNK`], whoever attends to them. In a chunk every sum
//! runs over the logical positions in a fixed order: a score over the dimensions, the normaliser over sixteen
//! lanes of positions, a value over the even and the odd positions apart. Scores and values are chains of fused
//! multiply-adds of [`numbers`], or exact sums of products of bytes where keys and values are held in [`blocks`]. Then
//! the chunks are added up, one after the other ([`partials`]).
//! So the result depends on the sequence alone, not on how it was cut into forwards, nor on the rows that
//! are computed beside it, nor on how many threads share its chunks.
//!
//! A row of a token tree sees a sequence that ends in a branch. The branch's keys and values stay in
//! the slots they were written to; its scores are brought to their logical positions before anything is
//! summed over them, and its values are read in logical order. So the bits are those of the path alone.
//!
//! The query heads that share a key head, of several rows, go together over a chunk: its keys and values are
//! read once for them. Positions that no row of them sees are not computed.

/// Does `body` for each `n` below `count`, at most 8, without a loop: the compiler keeps sums in registers
/// only where their index is a constant. What is not below `count`, a constant too, is not even translated.
macro_rules! unrolled {
    ($n:ident in $count:expr => $body:expr) => {{
        unrolled!(@ 0, $n, $count, $body);
        unrolled!(@ 1, $n, $count, $body);
        unrolled!(@ 2, $n, $count, $body);
        unrolled!(@ 3, $n, $count, $body);
        unrolled!(@ 4, $n, $count, $body);
        unrolled!(@ 5, $n, $count, $body);
        unrolled!(@ 6, $n, $count, $body);
        unrolled!(@ 7, $n, $count, $body);
    }};
    (@ $value:literal, $n:ident, $count:expr, $body:expr) => {
        if const { $value < $count } {
            let $n: usize = $value;
            $body;
        }
    };
}

/// Does `body` with a constant `n` that is `count`, of at most `most`, a constant too and no more than 8: what is beyond
/// it is not even translated.
macro_rules! with_count {
    ($n:ident = $count:expr, of $most:expr => $body:expr) => {
        match $count {
            8.. if const { $most > 7 } => with_count!(@ 8, $n, $body),
            7 if const { $most > 6 } => with_count!(@ 7, $n, $body),
            6 if const { $most > 5 } => with_count!(@ 6, $n, $body),
            5 if const { $most > 4 } => with_count!(@ 5, $n, $body),
            4 if const { $most > 3 } => with_count!(@ 4, $n, $body),
            3 if const { $most > 2 } => with_count!(@ 3, $n, $body),
            2 if const { $most > 1 } => with_count!(@ 2, $n, $body),
            _ => with_count!(@ 1, $n, $body),
        }
    };
    (@ $value:literal, $n:ident, $body:expr) => {{
        const $n: usize = $value;
        $body
    }};
}

mod ahead;
mod blocks;
mod division;
mod exponential;
mod kernel;
mod lanes;
mod merging;
mod numbers;
mod partials;
mod scores;
mod scratch;
mod spans;
mod stretch;

use parking_lot::Mutex;
use speculation::ports::{KvCache, Segment};
use speculation::tree_paths::TreePaths;

use self::{
    division::WorkItem,
    kernel::{PartScratch, ThreadShare},
    merging::MergedPieces,
    partials::RunningSum,
};
use crate::{
    cache::{CpuCache, LayerCache, PAGE},
    cpu::{Cpu, SharedSlice},
};

/// Multiply-adds of attention below which a batch stays on the calling thread: some 2 µs, for keys and values
/// of a decoding step come from the outermost cache, as fast as a core can read it.
const PARALLEL_WORK: usize = 48 << 10;
/// Positions whose sums are taken together: a whole number of pages.
const CHUNK: usize = 4 * PAGE;
/// Most queries that go together over a chunk: their scores should stay in the cache.
const TOGETHER: usize = 16;

/// How a layer turns products of query and key into weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionScoring {
    /// What products are multiplied by.
    pub(crate) scale: f32,
    /// Scores s become c tanh(s / c) (Gemma 2).
    pub(crate) softcap: Option<f32>,
    /// Most positions seen, the query's own included.
    pub(crate) window: Option<usize>,
}

/// What is added to the scores of one query, by head and position (T5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bias<'a> {
    /// For head `h` and position `t` at `h * stride + offset + t`.
    pub(crate) table: &'a [f32],
    pub(crate) stride: usize,
    pub(crate) offset: usize,
}

/// What one row sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// Positions attended to: the row's own and all before it.
    pub(crate) visible: usize,
    /// Where the last of them stand, as distances from the slot of the first of these; they grow.
    /// Empty where slots are positions.
    pub(crate) branch: &'a [u32],
    /// Added to the scores, by position.
    pub(crate) bias: Option<Bias<'a>>,
}

impl<'a> View<'a> {
    /// Returns what a row of `segment` sees of its own sequence: all up to itself, and in the segment's `tree` of
    /// drafts no other branch.
    pub(crate) fn of_row(segment: &Segment<'_, CpuCache>, tree: &'a TreePaths, row: usize) -> Self {
        let (visible, branch) = match segment.node(row) {
            None => (segment.cache.len() + row + 1, &[][..]),
            Some(node) => {
                let path = tree.path(node);
                (segment.root() + path.len(), path)
            }
        };
        Self {
            visible,
            branch,
            bias: None,
        }
    }
}

/// What the rows of a batch see: caches, one for each segment, and views, one for each row.
pub(crate) trait Views: Sync {
    /// Number of segments.
    fn segments(&self) -> usize;
    /// Rows of a segment.
    fn rows(&self, segment: usize) -> usize;
    /// Keys and values that the rows of a segment attend to.
    fn cache(&self, segment: usize) -> &LayerCache;
    /// Returns what row `row` of the segment sees of them.
    fn view(&self, segment: usize, row: usize) -> View<'_>;
    /// Brings key head `kv_head` of the segment's rows, and the queries that share it, to their positions, and
    /// writes its keys and values to the cache: before it is attended to, and once. The first of the rows is
    /// row `first` of the batch. Nothing is left to do unless a model says otherwise.
    ///
    /// # Safety
    /// Nobody else places this head of the segment meanwhile, or attends to it.
    unsafe fn place(&self, _segment: usize, _first: usize, _kv_head: usize) {}
}

/// Attention of one layer.
pub(crate) struct Attention<'a> {
    /// One row after the other, each beginning with its query, `(heads, head_dim)`.
    pub(crate) queries: SharedSlice<'a, f32>,
    /// From one row of `queries` to the next.
    pub(crate) stride: usize,
    pub(crate) views: &'a dyn Views,
    pub(crate) scoring: AttentionScoring,
}

/// Buffers that attention reuses.
#[derive(Debug, Default)]
pub(crate) struct AttentionScratch {
    items: Vec<WorkItem>,
    /// For each thread that shares the work.
    parts: Vec<Mutex<PartScratch>>,
    /// Sums of the queries whose pieces are being added up.
    sums: Vec<RunningSum>,
}

impl Clone for AttentionScratch {
    /// Buffers of its own.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Attention<'_> {
    /// Writes the results to `output`, `(rows, heads, head_dim)`.
    pub(crate) fn forward(&self, cpu: &Cpu, output: &mut [f32], scratch: &mut AttentionScratch) {
        let rows: usize = (0..self.views.segments()).map(|s| self.views.rows(s)).sum();
        if rows == 0 {
            return;
        }
        let query_dim = output.len() / rows;
        let AttentionScratch { items, parts, sums } = scratch;
        let work = self.divide(query_dim, items);
        self.place_long(cpu, query_dim);
        let threads = if work < PARALLEL_WORK {
            1
        } else {
            cpu.threads.count()
        };
        if parts.len() < threads {
            parts.resize_with(threads, Mutex::default);
        }
        let parts = &mut parts[..threads];
        for part in &mut *parts {
            part.get_mut().items.clear();
        }
        self.deal(items, work, threads, |part, item| {
            parts[part].get_mut().items.push(item);
        });
        let run = |part: usize| {
            let mut part = parts[part].lock();
            let part = ThreadShare {
                attention: self,
                scratch: &mut part,
            };
            part.run(cpu.level);
        };
        if threads == 1 {
            run(0);
        } else {
            cpu.threads.each(threads, &run);
        }
        for part in parts {
            let part = part.get_mut();
            part.copy_to(output, query_dim);
            cpu.level.run(MergedPieces {
                part,
                sums,
                output,
                query_dim,
            });
        }
    }

    /// Query `index` of an item, `(head_dim)`.
    #[inline(always)]
    fn query(&self, item: &WorkItem, index: usize) -> &[f32] {
        let head = item.kv_head * item.group + index % item.group;
        let row = item.batch_row + index / item.group;
        let first = row * self.stride + head * item.head_dim;
        // SAFETY: this head's queries are placed, and nobody writes them any more.
        unsafe { self.queries.read(first, item.head_dim) }
    }

    /// Places the segments of which several items attend to a head: it must be done before any of them. Where one
    /// item does, it is left to it, whose thread then has the keys at hand.
    fn place_long(&self, cpu: &Cpu, query_dim: usize) {
        let is_long = |segment: &usize| {
            let cache = self.views.cache(*segment);
            self.views.rows(*segment) > together(query_dim / cache.head_dim() / cache.kv_heads())
        };
        let segments = 0..self.views.segments();
        let Some(long) = segments.clone().find(is_long) else {
            return;
        };
        cpu.threads
            .each(self.views.cache(long).kv_heads(), &|kv_head| {
                let mut first = 0;
                for segment in segments.clone() {
                    if is_long(&segment) {
                        // SAFETY: each head is one call's, and nobody attends yet.
                        unsafe { self.views.place(segment, first, kv_head) };
                    }
                    first += self.views.rows(segment);
                }
            });
    }
}

/// Rows that go together, if a key head has `group` queries in each.
fn together(group: usize) -> usize {
    (TOGETHER / group).max(1)
}

#[cfg(test)]
mod tests;
