//! One stretch of an item: scores, weights, weighted values.

use std::{marker::PhantomData, ops::Range};

use super::{
    Attention,
    ahead::NeededLines,
    division::WorkItem,
    lanes::Lanes,
    mixing::{add_scaled, mix},
    pages::ReadPage,
    partials::ChunkSum,
    scores::{Products, add_bias, cap, softmax},
    spans::{SeenSpan, Stretch, shared_slots, trunk_slots},
};
use crate::cache::{LANES, LayerCache, PAGE};

/// Buffers of one stretch after the other.
#[derive(Debug, Default)]
pub(super) struct StretchScratch {
    /// `(queries, slots of the stretch's pages)`: slots, then positions, counted from the first page's first on.
    scores: Vec<f32>,
    /// `(chunks, queries)`.
    pub(super) chunks: Vec<ChunkSum>,
    /// `(chunks, queries, 2, head_dim)`: sums over even and over odd positions, then the sum of both in the
    /// place of the first.
    pub(super) values: Vec<f32>,
    /// Keys or values of the page being read, where they are held in blocks.
    unpacked: Vec<f32>,
}

/// The queries that go together through a page, of `queries` of an item: about as many in each.
#[inline(always)]
fn tiles<L: Lanes>(queries: usize) -> impl Iterator<Item = Range<usize>> {
    let count = queries.div_ceil(L::TILE);
    (0..count).map(move |tile| queries * tile / count..queries * (tile + 1) / count)
}

/// Brings the item's queries together, `(head_dim, queries)` for each of the [`tiles`], so that a loop over the
/// dimensions reads on.
#[inline(always)]
pub(super) fn pack<L: Lanes>(attention: &Attention<'_>, item: &WorkItem, packed: &mut Vec<f32>) {
    let WorkItem {
        group, head_dim, ..
    } = *item;
    // What is left over is written below.
    packed.resize(item.queries() * head_dim, 0.0);
    for tile in tiles::<L>(item.queries()) {
        let packed = &mut packed[tile.start * head_dim..][..tile.len() * head_dim];
        for (n, index) in tile.clone().enumerate() {
            let head = item.kv_head * group + index % group;
            let row = item.batch_row + index / group;
            let first = row * attention.stride + head * head_dim;
            // SAFETY: this head's queries are placed, and nobody writes them any more.
            let query = unsafe { attention.queries.range(first, head_dim) };
            for (packed, number) in packed.chunks_exact_mut(tile.len()).zip(query) {
                packed[n] = *number;
            }
        }
    }
}

/// One stretch being computed with `L`, of a cache whose pages hold `P`.
pub(super) struct StretchWork<'a, 'b, L, P> {
    attention: &'a Attention<'b>,
    cache: &'a LayerCache,
    item: &'a WorkItem,
    /// As [`pack`] leaves them.
    queries: &'a [f32],
    stretch: Stretch,
    /// Slots of the pages.
    width: usize,
    scratch: &'a mut StretchScratch,
    format: PhantomData<(L, P)>,
}

impl<'a, 'b, L: Lanes, P: ReadPage> StretchWork<'a, 'b, L, P> {
    #[inline(always)]
    pub(super) fn new(
        attention: &'a Attention<'b>,
        item: &'a WorkItem,
        queries: &'a [f32],
        stretch: Stretch,
        scratch: &'a mut StretchScratch,
    ) -> Self {
        Self {
            attention,
            cache: attention.views.cache(item.segment),
            item,
            queries,
            stretch,
            width: stretch.width(),
            scratch,
            format: PhantomData,
        }
    }

    /// Leaves sums and values of each chunk in the buffers. Page `next` is what the item goes on with.
    #[inline(always)]
    pub(super) fn compute(&mut self, spans: &[SeenSpan], next: Option<usize>) {
        // What is not written is not read: the rest may be left over.
        if self.scratch.scores.len() < spans.len() * self.width {
            self.scratch.scores.resize(spans.len() * self.width, 0.0);
        }
        self.score(spans);
        self.weigh(spans);
        let sums = self.stretch.chunks().len() * spans.len();
        self.scratch.values.clear();
        self.scratch
            .values
            .resize(sums * 2 * self.item.head_dim, 0.0);
        self.mix(spans, next);
        for sums in self.scratch.values.chunks_exact_mut(2 * self.item.head_dim) {
            let (even, odd) = sums.split_at_mut(self.item.head_dim);
            for (even, odd) in even.iter_mut().zip(odd) {
                *even += *odd;
            }
        }
    }

    /// Whether other items of the segment read the same pages, as those of a prompt do: they are in the cache then, and
    /// asking for them ahead would only take time.
    #[inline(always)]
    fn is_shared(&self) -> bool {
        self.attention.views.rows(self.item.segment) > self.item.rows
    }

    /// What `page` holds.
    #[inline(always)]
    fn held(&self, page: usize) -> &'a P {
        self.cache.page(page).held::<P>()
    }

    /// Slots of `page`, up to the last of the stretch.
    #[inline(always)]
    fn slots(&self, page: usize) -> usize {
        (self.stretch.slots - page * PAGE).min(PAGE)
    }

    /// Products of all queries with all keys that one of them sees, and some more, scaled.
    #[inline(always)]
    fn score(&mut self, spans: &[SeenSpan]) {
        let is_shared = self.is_shared();
        let kv_head = self.item.kv_head;
        let mut room = std::mem::take(&mut self.scratch.unpacked);
        for page in self.stretch.pages() {
            let blocks = self.slots(page).div_ceil(LANES);
            let keys = self.held(page).keys::<L>(kv_head, blocks, &mut room);
            let ahead = if is_shared {
                NeededLines::NONE
            } else if page + 1 < self.stretch.end_page {
                self.held(page + 1).key_lines(kv_head)
            } else {
                self.held(self.stretch.first_page).value_lines(kv_head)
            };
            for tile in tiles::<L>(spans.len()) {
                let ahead = ahead.share(tile.clone(), spans.len());
                let (keys, of) = ((keys, ahead), (tile.start, page, blocks));
                match tile.len() {
                    8.. if const { L::TILE > 7 } => self.score_tile::<8, 2>(of, keys),
                    7 if const { L::TILE > 6 } => self.score_tile::<7, 2>(of, keys),
                    6 if const { L::TILE > 5 } => self.score_tile::<6, 4>(of, keys),
                    5 if const { L::TILE > 4 } => self.score_tile::<5, 4>(of, keys),
                    4 if const { L::TILE > 3 } => self.score_tile::<4, 4>(of, keys),
                    3 if const { L::TILE > 2 } => self.score_tile::<3, 4>(of, keys),
                    2 if const { L::SUMS >= 8 } => self.score_tile::<2, 4>(of, keys),
                    2 => self.score_tile::<2, 2>(of, keys),
                    _ => self.score_tile::<1, 4>(of, keys),
                }
            }
        }
        self.scratch.unpacked = room;
    }

    /// The products of `N` queries with a page's keys, `B` blocks of them at a time.
    #[inline(always)]
    fn score_tile<const N: usize, const B: usize>(
        &mut self,
        (first, page, blocks): (usize, usize, usize),
        (keys, ahead): (&[[P::Number; LANES]], NeededLines),
    ) {
        let offset = (page - self.stretch.first_page) * PAGE;
        let at = std::array::from_fn(|n| (first + n) * self.width + offset);
        let scale = self.attention.scoring.scale;
        L::run(Products::<L, P::Number, N, B> {
            queries: &self.queries[first * self.item.head_dim..][..N * self.item.head_dim],
            scale,
            keys,
            ahead,
            blocks,
            scores: &mut self.scratch.scores,
            at,
            lanes: PhantomData,
        });
    }

    /// Turns products into weights, by position, chunk by chunk.
    #[inline(always)]
    fn weigh(&mut self, spans: &[SeenSpan]) {
        let base = self.stretch.first_page * PAGE;
        let group = self.item.group;
        let StretchScratch { scores, chunks, .. } = &mut *self.scratch;
        chunks.clear();
        chunks.resize(self.stretch.chunks().len() * spans.len(), ChunkSum::UNSEEN);
        for (index, span) in spans.iter().enumerate() {
            let scores = &mut scores[index * self.width..][..self.width];
            if let Some(softcap) = self.attention.scoring.softcap {
                let to = span.slots.min(self.stretch.slots).max(base) - base;
                cap(&mut scores[..to.next_multiple_of(LANES)], softcap);
            }
            let row = self.item.row + index / group;
            let view = self.attention.views.view(self.item.segment, row);
            if self.stretch.has_branch(span) {
                for (position, &slot) in (span.trunk..).zip(view.branch) {
                    // Never overwrites a score yet to be read: a node stands after its ancestors.
                    scores[position - base] = scores[span.trunk + slot as usize - base];
                }
            }
            for (chunk, sums) in (self.stretch.chunks()).zip(chunks.chunks_exact_mut(spans.len())) {
                let seen = span.in_chunk(chunk);
                if seen.is_empty() {
                    continue;
                }
                let from = seen.start / LANES * LANES;
                if let Some(bias) = view.bias {
                    let head = self.item.kv_head * group + index % group;
                    let scores = &mut scores[from - base..seen.end - base];
                    add_bias(scores, bias, head, from);
                }
                let to = seen.end.next_multiple_of(LANES);
                let scores = &mut scores[from - base..to - base];
                sums[index] = softmax(scores, seen.start - from, seen.end - from);
            }
        }
    }

    /// Sums values times weights: over the trunk page by page, first what each query sees before the slots that
    /// it has in common with its neighbours, then these, then the rest, so that every sum is in order.
    #[inline(always)]
    fn mix(&mut self, spans: &[SeenSpan], next: Option<usize>) {
        let of_query = 2 * self.item.head_dim;
        let is_shared = self.is_shared();
        let kv_head = self.item.kv_head;
        let mut sums = std::mem::take(&mut self.scratch.values);
        let mut room = std::mem::take(&mut self.scratch.unpacked);
        for page in self.stretch.pages() {
            let values = self
                .held(page)
                .values::<L>(kv_head, self.slots(page), &mut room);
            let ahead = match next {
                _ if is_shared => NeededLines::NONE,
                _ if page + 1 < self.stretch.end_page => self.held(page + 1).value_lines(kv_head),
                Some(next) => self.held(next).key_lines(kv_head),
                None => NeededLines::NONE,
            };
            let chunk = self.chunk_of(page * PAGE);
            let sums = &mut sums[chunk * spans.len() * of_query..][..spans.len() * of_query];
            for tile in tiles::<L>(spans.len()) {
                let (first, count) = (tile.start, tile.len());
                let ahead = ahead.share(tile.clone(), spans.len());
                let spans = &spans[tile];
                let sums = &mut sums[first * of_query..][..count * of_query];
                let shared = shared_slots(spans, page);
                self.mix_alone(first, page, values, spans, sums, |seen| {
                    seen.start..seen.end.min(shared.start)
                });
                if shared.start < PAGE {
                    let (of, values) = ((first, page), (values, ahead));
                    match count {
                        8.. if const { L::TILE > 7 } => {
                            self.mix_tile::<8>(of, values, shared.clone(), sums);
                        }
                        7 if const { L::TILE > 6 } => {
                            self.mix_tile::<7>(of, values, shared.clone(), sums);
                        }
                        6 if const { L::TILE > 5 } => {
                            self.mix_tile::<6>(of, values, shared.clone(), sums);
                        }
                        5 if const { L::TILE > 4 } => {
                            self.mix_tile::<5>(of, values, shared.clone(), sums);
                        }
                        4 if const { L::TILE > 3 } => {
                            self.mix_tile::<4>(of, values, shared.clone(), sums);
                        }
                        3 if const { L::TILE > 2 } => {
                            self.mix_tile::<3>(of, values, shared.clone(), sums);
                        }
                        2 => self.mix_tile::<2>(of, values, shared.clone(), sums),
                        _ => self.mix_tile::<1>(of, values, shared.clone(), sums),
                    }
                }
                self.mix_alone(first, page, values, spans, sums, |seen| {
                    seen.start.max(shared.end)..seen.end
                });
            }
        }
        self.mix_branches(spans, &mut sums, &mut room);
        self.scratch.values = sums;
        self.scratch.unpacked = room;
    }

    /// The stretch's chunk that `position` is in.
    #[inline(always)]
    fn chunk_of(&self, position: usize) -> usize {
        (position / super::CHUNK)
            .saturating_sub(self.stretch.chunks().start)
            .min(self.stretch.chunks().len() - 1)
    }

    /// Adds for each of the queries from `first` on the slots that `part` leaves of those it sees.
    #[inline(always)]
    fn mix_alone(
        &self,
        first: usize,
        page: usize,
        values: &[P::Number],
        spans: &[SeenSpan],
        sums: &mut [f32],
        part: impl Fn(Range<usize>) -> Range<usize>,
    ) {
        let sums = sums.chunks_exact_mut(2 * self.item.head_dim);
        for (n, (span, sums)) in spans.iter().zip(sums).enumerate() {
            let slots = part(trunk_slots(span, page));
            if slots.start < slots.end {
                self.mix_tile::<1>((first + n, page), (values, NeededLines::NONE), slots, sums);
            }
        }
    }

    /// Weights of query `index`, by slot of the page.
    #[inline(always)]
    fn weights(&self, index: usize, page: usize) -> &[f32] {
        let at = index * self.width + (page - self.stretch.first_page) * PAGE;
        &self.scratch.scores[at..][..PAGE]
    }

    /// The slots `slots` of one page, for `N` queries from `first` on.
    #[inline(always)]
    fn mix_tile<const N: usize>(
        &self,
        (first, page): (usize, usize),
        values: (&[P::Number], NeededLines),
        slots: Range<usize>,
        sums: &mut [f32],
    ) {
        let weights: [&[f32]; N] = std::array::from_fn(|n| self.weights(first + n, page));
        mix::<L, P::Number, N>(weights, values, slots, self.item.head_dim, sums);
    }

    /// The branches, whose values stand anywhere behind the trunk.
    #[inline(always)]
    fn mix_branches(&self, spans: &[SeenSpan], sums: &mut [f32], room: &mut Vec<f32>) {
        let head_dim = self.item.head_dim;
        let base = self.stretch.first_page * PAGE;
        for (index, span) in spans.iter().enumerate() {
            if !self.stretch.has_branch(span) {
                continue;
            }
            let row = self.item.row + index / self.item.group;
            let view = self.attention.views.view(self.item.segment, row);
            for (position, &node) in (span.trunk..).zip(view.branch) {
                if position < span.first {
                    continue;
                }
                let slot = span.trunk + node as usize;
                let page = self.held(slot / PAGE);
                let value = page.value::<L>(self.item.kv_head, slot % PAGE, room);
                let weight = self.scratch.scores[index * self.width + position - base];
                let sum = 2 * (self.chunk_of(position) * spans.len() + index) + position % 2;
                add_scaled::<L, P::Number>(&mut sums[sum * head_dim..][..head_dim], value, weight);
            }
        }
    }
}
