//! One thread's share of a layer's attention.

use std::{marker::PhantomData, ops::Range};

use half::f16;
use speculation::simd::Level;

use super::Attention;
#[cfg(target_arch = "x86_64")]
use super::lanes::x86;
use super::lanes::{LaneNumber, Lanes};
use super::mixing::{add_scaled, mix};
use super::scores::{add_bias, products, scale, softmax};
use super::spans::{SeenSpan, WorkItem, shared_slots, trunk_slots};
use crate::cache::{KvFormat, LANES, LayerCache, PAGE};

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct PartScratch {
    /// What it has to do.
    pub(super) items: Vec<WorkItem>,
    item: ItemScratch,
    /// Results, `(rows, group, head_dim)` for each item.
    output: Vec<f32>,
}

/// Buffers of one item after the other.
#[derive(Debug, Default)]
struct ItemScratch {
    /// `(queries, slots of the pages that the item touches)`.
    scores: Vec<f32>,
    spans: Vec<SeenSpan>,
    /// `(queries, 2, head_dim)`: sums over even and over odd positions.
    sums: Vec<f32>,
}

/// The items of one thread.
pub(super) struct ThreadShare<'a, 'b> {
    pub(super) attention: &'a Attention<'b>,
    pub(super) scratch: &'a mut PartScratch,
}

impl PartScratch {
    /// Copies the results to `output`, `(rows, query_dim)`.
    pub(super) fn copy_to(&self, output: &mut [f32], query_dim: usize) {
        let mut rest = self.output.as_slice();
        for item in &self.items {
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
    fn run_avx512(self) {
        self.run_on::<x86::Avx512>();
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn run_avx2(self) {
        self.run_on::<x86::Avx2>();
    }

    #[inline(always)]
    fn run_on<L: Lanes>(self) {
        let PartScratch {
            items,
            item: scratch,
            output,
        } = self.scratch;
        let numbers = items.iter().map(|item| item.rows * item.width()).sum();
        // What is left over is written below.
        output.resize(numbers, 0.0);
        let mut output = output.as_mut_slice();
        for item in items.iter() {
            if item.places {
                // SAFETY: nobody else has this head of the segment.
                unsafe {
                    let views = self.attention.views;
                    views.place(item.segment, item.batch_row, item.kv_head);
                }
            }
            let (own, later) = output.split_at_mut(item.rows * item.width());
            output = later;
            match self.attention.views.cache(item.segment).format() {
                KvFormat::F16 => self.attention.attend::<L, f16>(item, scratch, own),
                KvFormat::F32 => self.attention.attend::<L, f32>(item, scratch, own),
            }
        }
    }
}

impl Attention<'_> {
    /// Writes the item's results to `output`, `(rows, group, head_dim)`; keys and values are numbers `T`.
    #[inline(always)]
    fn attend<L: Lanes, T: LaneNumber>(
        &self,
        item: &WorkItem,
        scratch: &mut ItemScratch,
        output: &mut [f32],
    ) {
        let ItemScratch {
            scores,
            spans,
            sums,
        } = scratch;
        let pages = self.spans(item, spans);
        let width = (pages.end - pages.start) * PAGE;
        // What is not written is not read: the rest may be left over.
        if scores.len() < spans.len() * width {
            scores.resize(spans.len() * width, 0.0);
        }
        let mut work = ItemWork {
            attention: self,
            cache: self.views.cache(item.segment),
            item,
            numbers: PhantomData::<(L, T)>,
            pages,
            width,
            scores,
        };
        work.score(spans);
        work.weigh(spans);
        sums.clear();
        sums.resize(spans.len() * 2 * item.head_dim, 0.0);
        work.mix(spans, sums);
        let sums = sums.chunks_exact(2 * item.head_dim);
        let output = output.chunks_exact_mut(item.head_dim);
        for ((span, sums), output) in spans.iter().zip(sums).zip(output) {
            let (even, odd) = sums.split_at(item.head_dim);
            for ((output, even), odd) in output.iter_mut().zip(even).zip(odd) {
                *output = (even + odd) / span.total;
            }
        }
    }
}

/// One item being computed.
struct ItemWork<'a, 'b, L, T> {
    attention: &'a Attention<'b>,
    cache: &'a LayerCache,
    item: &'a WorkItem,
    /// What is computed with, and what the cache holds.
    numbers: PhantomData<(L, T)>,
    pages: Range<usize>,
    /// Slots of the pages.
    width: usize,
    /// `(queries, width)`; slots, then positions, are counted from the first page's first on.
    scores: &'a mut [f32],
}

impl<'b, L: Lanes, T: LaneNumber> ItemWork<'_, 'b, L, T> {
    /// Query `index` of the item, `(head_dim)`: heads of one row, then of the next.
    #[inline(always)]
    fn query(&self, index: usize) -> &'b [f32] {
        let WorkItem {
            group, head_dim, ..
        } = *self.item;
        let head = self.item.kv_head * group + index % group;
        let row = self.item.batch_row + index / group;
        let first = row * self.attention.stride + head * head_dim;
        // SAFETY: this head's queries are placed, and nobody writes them any more.
        unsafe { self.attention.queries.range(first, head_dim) }
    }

    /// Products of all queries with all keys that one of them sees, and some more.
    #[inline(always)]
    fn score(&mut self, spans: &[SeenSpan]) {
        let last = spans.iter().map(|span| span.slots).max().unwrap_or(0);
        for page in self.pages.clone() {
            let keys = self.cache.page(page).held::<T>().keys(self.item.kv_head);
            let blocks = (last - page * PAGE).min(PAGE).div_ceil(LANES);
            let mut first = 0;
            while first < spans.len() {
                first += match (spans.len() - first).min(L::TILE) {
                    4.. if const { L::TILE > 3 } => {
                        self.score_tile::<4, 2>(first, page, keys, blocks)
                    }
                    3 if const { L::TILE > 2 } => {
                        self.score_tile::<3, 2>(first, page, keys, blocks)
                    }
                    2 if const { L::STRIPS > 1 } => {
                        self.score_tile::<2, 4>(first, page, keys, blocks)
                    }
                    2 => self.score_tile::<2, 2>(first, page, keys, blocks),
                    _ => self.score_tile::<1, 4>(first, page, keys, blocks),
                };
            }
        }
    }

    #[inline(always)]
    fn score_tile<const N: usize, const B: usize>(
        &mut self,
        first: usize,
        page: usize,
        keys: &[[T; LANES]],
        blocks: usize,
    ) -> usize {
        let queries: [&[f32]; N] = std::array::from_fn(|n| self.query(first + n));
        let offset = (page - self.pages.start) * PAGE;
        let at = std::array::from_fn(|n| (first + n) * self.width + offset);
        products::<L, T, N, B>(queries, keys, blocks, self.scores, at);
        N
    }

    /// Turns products into weights, by position.
    #[inline(always)]
    fn weigh(&mut self, spans: &mut [SeenSpan]) {
        let base = self.pages.start * PAGE;
        let group = self.item.group;
        for (index, span) in spans.iter_mut().enumerate() {
            let scores = &mut self.scores[index * self.width..][..self.width];
            let from = span.first.min(span.trunk) / LANES * LANES - base;
            let to = span.slots.next_multiple_of(LANES) - base;
            scale(&mut scores[from..to], self.attention.scoring);
            let row = self.item.row + index / group;
            let view = self.attention.views.view(self.item.segment, row);
            for (position, &slot) in (span.trunk..).zip(view.branch) {
                // Never overwrites a score yet to be read: a node stands after its ancestors.
                scores[position - base] = scores[span.trunk + slot as usize - base];
            }
            let from = span.first / LANES * LANES;
            if let Some(bias) = view.bias {
                let head = self.item.kv_head * group + index % group;
                let scores = &mut scores[from - base..span.visible - base];
                add_bias(scores, bias, head, from);
            }
            let to = span.visible.next_multiple_of(LANES);
            let scores = &mut scores[from - base..to - base];
            span.total = softmax(scores, span.first - from, span.visible - from);
        }
    }

    /// Sums values times weights: over the trunk page by page, first what each query sees before the slots that
    /// it has in common with its neighbours, then these, then the rest, so that every sum is in order.
    #[inline(always)]
    fn mix(&self, spans: &[SeenSpan], sums: &mut [f32]) {
        let of_query = 2 * self.item.head_dim;
        for page in self.pages.clone() {
            let values = self.cache.page(page).held::<T>().values(self.item.kv_head);
            for turn in 0..3 {
                for (tile, spans) in spans.chunks(L::TILE).enumerate() {
                    let first = tile * L::TILE;
                    let shared = shared_slots(spans, page);
                    let sums = &mut sums[first * of_query..][..spans.len() * of_query];
                    match (turn, spans.len()) {
                        (1, 4..) if const { L::TILE > 3 } => {
                            self.mix_tile::<4>(first, page, values, shared, sums);
                        }
                        (1, 3) if const { L::TILE > 2 } => {
                            self.mix_tile::<3>(first, page, values, shared, sums);
                        }
                        (1, 2) => self.mix_tile::<2>(first, page, values, shared, sums),
                        (1, _) => {}
                        _ => {
                            for (n, sums) in sums.chunks_exact_mut(of_query).enumerate() {
                                let Range { start, end } = trunk_slots(&spans[n], page);
                                let slots = if turn == 0 {
                                    start..end.min(shared.start)
                                } else {
                                    start.max(shared.end)..end
                                };
                                if slots.start < slots.end {
                                    self.mix_tile::<1>(first + n, page, values, slots, sums);
                                }
                            }
                        }
                    }
                }
            }
        }
        self.mix_branches(spans, sums);
    }

    /// Weights of query `index`, by slot of the page.
    #[inline(always)]
    fn weights(&self, index: usize, page: usize) -> &[f32] {
        &self.scores[index * self.width + (page - self.pages.start) * PAGE..][..PAGE]
    }

    /// The slots `slots` of one page, for `N` queries from `first` on.
    #[inline(always)]
    fn mix_tile<const N: usize>(
        &self,
        first: usize,
        page: usize,
        values: &[T],
        slots: Range<usize>,
        sums: &mut [f32],
    ) {
        let weights: [&[f32]; N] = std::array::from_fn(|n| self.weights(first + n, page));
        mix::<L, T, N>(weights, values, slots, self.item.head_dim, sums);
    }

    /// The branches, whose values stand anywhere behind the trunk.
    #[inline(always)]
    fn mix_branches(&self, spans: &[SeenSpan], sums: &mut [f32]) {
        let head_dim = self.item.head_dim;
        let base = self.pages.start * PAGE;
        let sums = sums.chunks_exact_mut(2 * head_dim);
        for (index, (span, sums)) in spans.iter().zip(sums).enumerate() {
            let row = self.item.row + index / self.item.group;
            let view = self.attention.views.view(self.item.segment, row);
            for (position, &node) in (span.trunk..).zip(view.branch) {
                if position < span.first {
                    continue;
                }
                let slot = span.trunk + node as usize;
                let page = self.cache.page(slot / PAGE);
                let values = page.held::<T>().values(self.item.kv_head);
                let value = &values[slot % PAGE * head_dim..][..head_dim];
                let weight = self.scores[index * self.width + position - base];
                let sums = &mut sums[position % 2 * head_dim..][..head_dim];
                add_scaled::<L, T>(sums, value, weight);
            }
        }
    }
}
