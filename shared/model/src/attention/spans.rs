//! What the queries of an item see.

use std::ops::Range;

use super::{Attention, CHUNK};
use crate::cache::PAGE;

/// What one query sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenSpan {
    /// First position seen.
    pub(super) first: usize,
    /// Positions before the branch; their slots are the same.
    pub(super) trunk: usize,
    /// Behind the last position seen.
    pub(super) visible: usize,
    /// Behind the last slot seen.
    pub(super) slots: usize,
}

impl SeenSpan {
    /// What it sees of a chunk, by position.
    #[inline(always)]
    pub(super) fn in_chunk(&self, chunk: usize) -> Range<usize> {
        let (from, to) = (chunk * CHUNK, (chunk + 1) * CHUNK);
        self.first.max(from)..self.visible.min(to)
    }

    /// First slot seen.
    #[inline(always)]
    fn from(&self) -> usize {
        self.first.min(self.trunk)
    }
}

/// What several queries see together, or a piece of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// First slot.
    pub(super) from: usize,
    /// Behind the last slot.
    pub(super) slots: usize,
    /// Behind the last chunk.
    pub(super) end_chunk: usize,
    /// The chunk in which the first branch begins, whose slots may be in any chunk behind. The chunks from this
    /// one on are computed in one go. Where nobody sees a branch, the last chunk there can be.
    pub(super) tail: usize,
}

impl Reach {
    /// Returns what `spans` reach.
    pub(super) fn of(spans: impl Iterator<Item = SeenSpan>) -> Self {
        let nothing = Self {
            from: usize::MAX,
            slots: 0,
            end_chunk: 0,
            tail: usize::MAX / CHUNK,
        };
        spans.fold(nothing, |all, span| {
            let tail = if span.trunk < span.visible {
                span.trunk / CHUNK
            } else {
                all.tail
            };
            Self {
                from: all.from.min(span.from()),
                slots: all.slots.max(span.slots),
                end_chunk: all.end_chunk.max(span.visible.div_ceil(CHUNK)),
                tail: all.tail.min(tail),
            }
        })
    }

    /// Returns the chunks that are computed together, one stretch after the other.
    pub(super) fn stretches(self) -> impl Iterator<Item = Stretch> {
        let first = self.from / CHUNK;
        let singles = (first..self.end_chunk.min(self.tail)).map(|chunk| chunk..chunk + 1);
        let tail = self.tail.max(first)..self.end_chunk;
        let tail = (!tail.is_empty()).then_some(tail);
        singles.chain(tail).map(move |chunks| {
            let from = self.from.max(chunks.start * CHUNK);
            let slots = if chunks.end == self.end_chunk {
                self.slots
            } else {
                chunks.end * CHUNK
            };
            Stretch {
                first_page: from / PAGE,
                end_page: slots.div_ceil(PAGE),
                slots,
                first_chunk: chunks.start,
                end_chunk: chunks.end,
            }
        })
    }
}

/// Chunks that are computed in one go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// First page.
    pub(super) first_page: usize,
    /// Behind the last page.
    pub(super) end_page: usize,
    /// Behind the last slot.
    pub(super) slots: usize,
    first_chunk: usize,
    end_chunk: usize,
}

impl Stretch {
    /// Its pages.
    pub(super) fn pages(&self) -> Range<usize> {
        self.first_page..self.end_page
    }

    /// Its chunks.
    pub(super) fn chunks(&self) -> Range<usize> {
        self.first_chunk..self.end_chunk
    }

    /// Whether it is the one that has the branch which `span` ends in, if that does.
    #[inline(always)]
    pub(super) fn has_branch(&self, span: &SeenSpan) -> bool {
        span.trunk < span.visible && span.trunk < self.end_chunk * CHUNK
    }

    /// Slots of its pages.
    pub(super) fn width(&self) -> usize {
        self.pages().len() * PAGE
    }
}

impl Attention<'_> {
    /// Returns what the queries of row `row` of a segment see.
    #[inline(always)]
    pub(super) fn seen(&self, segment: usize, row: usize) -> SeenSpan {
        let view = self.views.view(segment, row);
        let trunk = view.visible - view.branch.len();
        SeenSpan {
            first: (self.scoring.window).map_or(0, |window| view.visible.saturating_sub(window)),
            trunk,
            visible: view.visible,
            slots: (view.branch.last()).map_or(view.visible, |last| trunk + *last as usize + 1),
        }
    }
}

/// The slots of `page` that are in the trunk that `span` sees.
#[inline(always)]
pub(super) fn trunk_slots(span: &SeenSpan, page: usize) -> Range<usize> {
    let slot = |position: usize| position.saturating_sub(page * PAGE).min(PAGE);
    slot(span.first)..slot(span.trunk)
}

/// The slots of `page` that all of `spans` see in the trunk; none, behind the page, where there are no such. What only
/// some of them see is added for each alone: a weight of 0 would not keep away a value that is no number.
#[inline(always)]
pub(super) fn shared_slots(spans: &[SeenSpan], page: usize) -> Range<usize> {
    let seen = spans.iter().map(|span| trunk_slots(span, page));
    let common = seen.fold(0..PAGE, |a, b| a.start.max(b.start)..a.end.min(b.end));
    if common.is_empty() {
        PAGE..PAGE
    } else {
        common
    }
}
