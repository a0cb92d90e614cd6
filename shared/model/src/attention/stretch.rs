//! One stretch of an item: scores, weights, weighted values.

mod weighted;

use std::{marker::PhantomData, ops::Range};

use super::{
    Attention,
    ahead::NeededLines,
    division::WorkItem,
    lanes::Lanes,
    pages::ReadPage,
    partials::ChunkSum,
    scores::{Products, add_bias, cap, softmax},
    spans::{SeenSpan, Stretch},
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

    /// Keys and values of `page`.
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
}
