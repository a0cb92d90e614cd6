//! One thread's share of a layer's attention.

use half::f16;
use speculation::simd::Level;

#[cfg(target_arch = "x86_64")]
use super::lanes::x86;
use super::{
    Attention,
    division::WorkItem,
    lanes::bytes::ByteLanes,
    partials::{ChunkSum, RunningSum},
    scratch::{PackedQueries, StretchScratch},
    spans::SeenSpan,
    stretch::{ComingKeys, HeldFormat, StretchWork},
};
use crate::cache::{KvFormat, LANES, PageBlocks, PageNumbers};

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct PartScratch {
    /// What it has to do.
    pub(super) items: Vec<WorkItem>,
    item: ItemScratch,
    /// Results of whole items, `(rows, group, head_dim)` for each.
    output: Vec<f32>,
    /// Of pieces of items, `(chunks, queries)` for each.
    pub(super) piece_sums: Vec<ChunkSum>,
    /// Weighted values of pieces of items, `(chunks, queries, head_dim)` for each.
    pub(super) piece_values: Vec<f32>,
}

/// Buffers of one item after the other.
#[derive(Debug, Default)]
struct ItemScratch {
    spans: Vec<SeenSpan>,
    queries: PackedQueries,
    stretch: StretchScratch,
    /// `(queries)`.
    sums: Vec<RunningSum>,
}

/// The items of one thread.
pub(super) struct ThreadShare<'a, 'b> {
    pub(super) attention: &'a Attention<'b>,
    pub(super) scratch: &'a mut PartScratch,
}

impl PartScratch {
    /// Copies the results of whole items to `output`, `(rows, query_dim)`.
    pub(super) fn copy_to(&self, output: &mut [f32], query_dim: usize) {
        let mut rest = self.output.as_slice();
        for item in self.items.iter().filter(|item| item.is_whole()) {
            let width = item.width();
            for row in item.batch_row..item.batch_row + item.rows {
                let (own, later) = rest.split_at(width);
                rest = later;
                output[row * query_dim + item.kv_head * width..][..width].copy_from_slice(own);
            }
        }
    }
}

impl ThreadShare<'_, '_> {
    /// Computes all items with the instructions of `level`.
    pub(super) fn run(self, level: Level) {
        match level {
            // SAFETY: this level is made only on CPUs that have the instructions.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Vnni { .. } => unsafe { self.run_avx512() },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 { .. } => unsafe { self.run_avx2() },
            Level::Baseline => self.run_on::<[f32; LANES]>(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]
    fn run_avx512(self) {
        self.run_on::<x86::Avx512>();
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn run_avx2(self) {
        self.run_on::<x86::Avx2>();
    }

    #[inline(always)]
    fn run_on<L: ByteLanes>(self) {
        let PartScratch {
            items,
            item: scratch,
            output,
            piece_sums,
            piece_values,
        } = self.scratch;
        piece_sums.clear();
        piece_values.clear();
        output.clear();
        let whole = items.iter().filter(|item| item.is_whole());
        output.resize(whole.map(|item| item.rows * item.width()).sum(), 0.0);
        let mut output = output.as_mut_slice();
        for (index, item) in items.iter().enumerate() {
            if item.places {
                // SAFETY: nobody else has this head of the segment.
                unsafe {
                    let views = self.attention.views;
                    views.place(item.segment, item.batch_row, item.kv_head);
                }
            }
            let results = if item.is_whole() {
                let (own, later) = output.split_at_mut(item.rows * item.width());
                output = later;
                ItemResults::Whole(own)
            } else {
                ItemResults::Piece(piece_sums, piece_values)
            };
            let attention = self.attention;
            let work = (item, items.get(index + 1));
            match attention.views.cache(item.segment).format() {
                KvFormat::Q8_0 => attention.attend::<L, PageBlocks>(work, scratch, results),
                KvFormat::F16 => attention.attend::<L, PageNumbers<f16>>(work, scratch, results),
                KvFormat::F32 => attention.attend::<L, PageNumbers<f32>>(work, scratch, results),
            }
        }
    }
}

/// Where the results of an item go.
enum ItemResults<'a> {
    /// `(queries, head_dim)`, zeros before.
    Whole(&'a mut [f32]),
    /// The sums of each chunk, and the weighted values, behind those of earlier pieces.
    Piece(&'a mut Vec<ChunkSum>, &'a mut Vec<f32>),
}

impl Attention<'_> {
    /// Computes an item, whose pages hold `P`; then comes another.
    #[inline(always)]
    fn attend<L: ByteLanes, P: HeldFormat<L>>(
        &self,
        (item, then): (&WorkItem, Option<&WorkItem>),
        scratch: &mut ItemScratch,
        mut results: ItemResults<'_>,
    ) {
        let ItemScratch {
            spans,
            queries,
            stretch: scratch,
            sums,
        } = scratch;
        let head_dim = item.head_dim;
        spans.clear();
        for row in item.row..item.row + item.rows {
            let span = self.seen(item.segment, row);
            spans.extend((0..item.group).map(|_| span));
        }
        P::pack(self, item, queries);
        sums.clear();
        sums.resize(spans.len(), RunningSum::NOTHING);
        let mut stretches = item.reach.stretches().peekable();
        while let Some(stretch) = stretches.next() {
            let mut work = StretchWork::<L, P>::new(self, item, queries, stretch, scratch);
            let first_of = |item: &WorkItem| item.reach.stretches().next();
            let coming = match (stretches.peek(), then) {
                (Some(next), _) => ComingKeys::of(self, item, *next),
                (None, Some(then)) => first_of(then)
                    .map(|first| ComingKeys::of(self, then, first))
                    .unwrap_or_default(),
                (None, None) => ComingKeys::default(),
            };
            work.compute(spans, &coming);
            for (index, chunk) in scratch.chunks.iter().enumerate() {
                let query = index % spans.len();
                let values = &scratch.values[index * head_dim..][..head_dim];
                match &mut results {
                    ItemResults::Whole(output) => {
                        if chunk.is_seen() {
                            let output = &mut output[query * head_dim..][..head_dim];
                            sums[query].add(output, *chunk, values);
                        }
                    }
                    ItemResults::Piece(chunks, all) => {
                        chunks.push(*chunk);
                        all.extend_from_slice(values);
                    }
                }
            }
        }
        if let ItemResults::Whole(output) = results {
            for (sum, output) in sums.iter().zip(output.chunks_exact_mut(head_dim)) {
                sum.divide(output);
            }
        }
    }
}
