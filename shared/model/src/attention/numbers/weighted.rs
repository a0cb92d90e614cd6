//! Values of a stretch times weights.

use std::{marker::PhantomData, ops::Range};

use super::{
    super::{
        ahead::NeededLines,
        lanes::{LaneNumber, Lanes},
        spans::{SeenSpan, shared_slots, trunk_slots},
        stretch::{ComingKeys, HeldFormat, StretchWork, tiles},
    },
    mixing::{MixedPage, add_scaled},
};
use crate::cache::{PAGE, PageNumbers};

impl<L: Lanes, T: LaneNumber> StretchWork<'_, '_, L, PageNumbers<T>>
where
    PageNumbers<T>: HeldFormat<L>,
{
    /// Sums values times weights: over the trunk page by page, first what each query sees before the slots that
    /// it has in common with its neighbours, then these, then the rest, so that every sum is in order.
    #[inline(always)]
    pub(super) fn mix_numbers(&mut self, spans: &[SeenSpan], coming: &ComingKeys<'_>) {
        let of_query = 2 * self.item.head_dim;
        let is_shared = self.is_shared();
        let kv_head = self.item.kv_head;
        let mut sums = std::mem::take(&mut self.scratch.halves);
        sums.clear();
        sums.resize(self.stretch.chunks().len() * spans.len() * of_query, 0.0);
        for page in self.stretch.pages() {
            let values = self.held(page).values(kv_head);
            let ahead = if is_shared {
                NeededLines::NONE
            } else {
                coming.lines::<L, PageNumbers<T>>(page - self.stretch.first_page)
            };
            let chunk = self.chunk_of(page * PAGE);
            let sums = &mut sums[chunk * spans.len() * of_query..][..spans.len() * of_query];
            for tile in tiles(spans.len(), L::TILE) {
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
                    with_count!(N = count, of L::TILE => {
                        self.mix_tile::<N>(of, values, shared.clone(), sums);
                    });
                }
                self.mix_alone(first, page, values, spans, sums, |seen| {
                    seen.start.max(shared.end)..seen.end
                });
            }
        }
        self.mix_branches(spans, &mut sums);
        let values = &mut self.scratch.values;
        values.clear();
        for sums in sums.chunks_exact(of_query) {
            let (even, odd) = sums.split_at(self.item.head_dim);
            values.extend(even.iter().zip(odd).map(|(even, odd)| even + odd));
        }
        self.scratch.halves = sums;
    }

    /// Adds for each of the queries from `first` on the slots that `part` leaves of those it sees.
    #[inline(always)]
    fn mix_alone(
        &self,
        first: usize,
        page: usize,
        values: &[T],
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
    fn weights(&self, index: usize, page: usize) -> &[f32; PAGE] {
        let at = index * self.width + (page - self.stretch.first_page) * PAGE;
        self.scratch.scores[at..].first_chunk().expect("a page's")
    }

    /// The slots `slots` of one page, for `N` queries from `first` on.
    #[inline(always)]
    fn mix_tile<const N: usize>(
        &self,
        (first, page): (usize, usize),
        (values, ahead): (&[T], NeededLines),
        slots: Range<usize>,
        sums: &mut [f32],
    ) {
        L::run(MixedPage::<L, T, N> {
            weights: std::array::from_fn(|n| self.weights(first + n, page)),
            values,
            ahead,
            slots,
            head_dim: self.item.head_dim,
            sums,
            lanes: PhantomData,
        });
    }

    /// The branches, whose values stand anywhere behind the trunk.
    #[inline(always)]
    fn mix_branches(&self, spans: &[SeenSpan], sums: &mut [f32]) {
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
                let values = self.held(slot / PAGE).values(self.item.kv_head);
                let value = &values[slot % PAGE * head_dim..][..head_dim];
                let weight = self.scratch.scores[index * self.width + position - base];
                let sum = 2 * (self.chunk_of(position) * spans.len() + index) + position % 2;
                add_scaled::<L, T>(&mut sums[sum * head_dim..][..head_dim], value, weight);
            }
        }
    }
}
