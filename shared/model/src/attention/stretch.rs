//! One stretch of an item: scores, weights, weighted values.

use std::{marker::PhantomData, ops::Range};

use super::{
    Attention, CHUNK,
    ahead::NeededLines,
    division::WorkItem,
    lanes::Lanes,
    partials::ChunkSum,
    scores::{Softmax, add_bias, cap},
    scratch::{PackedQueries, StretchScratch},
    spans::{SeenSpan, Stretch},
};
use crate::cache::{LANES, LayerCache, PAGE, PageFormat};

/// What products of queries, keys and values are made of, in one format of pages.
pub(super) trait HeldFormat<L: Lanes>: PageFormat + 'static {
    /// Most queries whose products go on side by side.
    const TILE: usize;

    /// Brings the item's queries together, tile by tile.
    fn pack(attention: &Attention<'_>, item: &WorkItem, packed: &mut PackedQueries);

    /// Where the keys of a page lie.
    fn key_lines(&self, kv_head: usize) -> NeededLines;

    /// Where the values of a page lie.
    fn value_lines(&self, kv_head: usize) -> NeededLines;

    /// Products of the queries `tile` with the keys of the first `16 * blocks` slots of `page`, scaled; of no more
    /// than a page. What is needed next is `ahead`.
    fn score(
        work: &mut StretchWork<'_, '_, L, Self>,
        tile: Range<usize>,
        page_and_blocks: (usize, usize),
        ahead: NeededLines,
    );

    /// Sums values times weights. Keys that are `coming` are needed next.
    fn mix(work: &mut StretchWork<'_, '_, L, Self>, spans: &[SeenSpan], coming: &ComingKeys<'_>);
}

/// Keys that are needed after a stretch: those of the next, or of the first of the next item.
#[derive(Clone, Debug, Default)]
pub(super) struct ComingKeys<'a> {
    cache: Option<&'a LayerCache>,
    kv_head: usize,
    pages: Range<usize>,
}

impl<'a> ComingKeys<'a> {
    /// Those of a stretch of `item`.
    pub(super) fn of(attention: &'a Attention<'_>, item: &WorkItem, stretch: Stretch) -> Self {
        Self {
            cache: Some(attention.views.cache(item.segment)),
            kv_head: item.kv_head,
            pages: stretch.pages(),
        }
    }

    /// Where those of page `index` of the stretch lie, if there is one and it holds `P`.
    #[inline(always)]
    pub(super) fn lines<L: Lanes, P: HeldFormat<L>>(&self, index: usize) -> NeededLines {
        let page = self.pages.start + index;
        match self.cache {
            Some(cache) if page < self.pages.end => {
                cache.page(page).held::<P>().key_lines(self.kv_head)
            }
            _ => NeededLines::NONE,
        }
    }
}

/// The queries that go together through a page, of `queries` of an item: about as many in each, no more than `most`.
#[inline(always)]
pub(super) fn tiles(queries: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = queries.div_ceil(most);
    (0..count).map(move |tile| queries * tile / count..queries * (tile + 1) / count)
}

/// One stretch being computed with `L`, of a cache whose pages hold `P`.
pub(super) struct StretchWork<'a, 'b, L, P> {
    pub(super) attention: &'a Attention<'b>,
    cache: &'a LayerCache,
    pub(super) item: &'a WorkItem,
    pub(super) queries: &'a PackedQueries,
    pub(super) stretch: Stretch,
    /// Slots of the pages.
    pub(super) width: usize,
    pub(super) scratch: &'a mut StretchScratch,
    format: PhantomData<(L, P)>,
}

impl<'a, 'b, L: Lanes, P: HeldFormat<L>> StretchWork<'a, 'b, L, P> {
    #[inline(always)]
    pub(super) fn new(
        attention: &'a Attention<'b>,
        item: &'a WorkItem,
        queries: &'a PackedQueries,
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

    /// Leaves sums and values of each chunk in the buffers. Keys that are `coming` are needed next.
    #[inline(always)]
    pub(super) fn compute(&mut self, spans: &[SeenSpan], coming: &ComingKeys<'_>) {
        // What is not written is not read: the rest may be left over.
        if self.scratch.scores.len() < spans.len() * self.width {
            self.scratch.scores.resize(spans.len() * self.width, 0.0);
        }
        self.score(spans.len());
        self.weigh(spans);
        P::mix(self, spans, coming);
    }

    /// Whether other items of the segment read the same pages, as those of a prompt do: they are in the cache then, and
    /// asking for them ahead would only take time.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.attention.views.rows(self.item.segment) > self.item.rows
    }

    /// Keys and values of `page`.
    #[inline(always)]
    pub(super) fn held(&self, page: usize) -> &'a P {
        self.cache.page(page).held::<P>()
    }

    /// Slots of `page`, up to the last of the stretch.
    #[inline(always)]
    fn slots(&self, page: usize) -> usize {
        (self.stretch.slots - page * PAGE).min(PAGE)
    }

    /// Products of all `queries` with all keys that one of them sees, and some more, scaled.
    #[inline(always)]
    fn score(&mut self, queries: usize) {
        let is_shared = self.is_shared();
        let kv_head = self.item.kv_head;
        for page in self.stretch.pages() {
            let blocks = self.slots(page).div_ceil(LANES);
            let ahead = if is_shared {
                NeededLines::NONE
            } else {
                self.held(page).value_lines(kv_head)
            };
            for tile in tiles(queries, P::TILE) {
                let ahead = ahead.share(tile.clone(), queries);
                P::score(self, tile, (page, blocks), ahead);
            }
        }
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
                sums[index] = L::run(Softmax {
                    scores,
                    seen: seen.start - from..seen.end - from,
                });
            }
        }
    }

    /// Where the scores of the `N` queries from `first` on begin that are of `page`.
    #[inline(always)]
    pub(super) fn scores_at<const N: usize>(&self, first: usize, page: usize) -> [usize; N] {
        let offset = (page - self.stretch.first_page) * PAGE;
        let (first, width) = (first * self.width + offset, self.width);
        std::array::from_fn(|n| first + n * width)
    }

    /// The stretch's chunk that `position` is in.
    #[inline(always)]
    pub(super) fn chunk_of(&self, position: usize) -> usize {
        (position / CHUNK)
            .saturating_sub(self.stretch.chunks().start)
            .min(self.stretch.chunks().len() - 1)
    }
}
