//! The items of work of one attention, and what the queries of an item see.

use std::ops::Range;

use super::Attention;
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
    /// Sum of the weights.
    pub(super) total: f32,
}

impl Attention<'_> {
    /// Fills `spans` with what the item's queries see, and returns the pages that this touches.
    #[inline(always)]
    pub(super) fn spans(&self, item: &WorkItem, spans: &mut Vec<SeenSpan>) -> Range<usize> {
        spans.clear();
        let (mut from, mut to) = (usize::MAX, 0);
        for row in item.row..item.row + item.rows {
            let view = self.views.view(item.segment, row);
            let trunk = view.visible - view.branch.len();
            let span = SeenSpan {
                first: (self.scoring.window)
                    .map_or(0, |window| view.visible.saturating_sub(window)),
                trunk,
                visible: view.visible,
                slots: (view.branch.last()).map_or(view.visible, |last| trunk + *last as usize + 1),
                total: 0.0,
            };
            from = from.min(span.first.min(trunk));
            to = to.max(span.slots);
            for _ in 0..item.group {
                spans.push(span);
            }
        }
        from / PAGE..to.div_ceil(PAGE)
    }
}

/// The slots of `page` that are in the trunk that `span` sees.
pub(super) fn trunk_slots(span: &SeenSpan, page: usize) -> Range<usize> {
    let slot = |position: usize| position.saturating_sub(page * PAGE).min(PAGE);
    slot(span.first)..slot(span.trunk)
}

/// The slots of `page` that all of `spans` see in the trunk, in whole pairs; none, behind the page, where that
/// is one query's. What only some of them see is added for each alone: a weight of 0 would not keep away a value
/// that is no number.
pub(super) fn shared_slots(spans: &[SeenSpan], page: usize) -> Range<usize> {
    let seen = spans.iter().map(|span| trunk_slots(span, page));
    let common = seen.fold(0..PAGE, |a, b| a.start.max(b.start)..a.end.min(b.end));
    let (from, to) = (common.start.next_multiple_of(2), common.end / 2 * 2);
    if spans.len() > 1 && from < to {
        from..to
    } else {
        PAGE..PAGE
    }
}

/// The queries of one key head, of some rows of one segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkItem {
    pub(super) segment: usize,
    /// First row, counted in its segment.
    pub(super) row: usize,
    pub(super) rows: usize,
    /// First row, counted in the batch.
    pub(super) batch_row: usize,
    pub(super) kv_head: usize,
    /// Query heads of a key head.
    pub(super) group: usize,
    pub(super) head_dim: usize,
    /// Whether the head is to be placed first: this is all of the segment that attends to it.
    pub(super) places: bool,
    /// Multiply-adds, about.
    pub(super) work: usize,
}

impl WorkItem {
    /// Numbers of a row's queries, and of its results.
    pub(super) fn width(&self) -> usize {
        self.group * self.head_dim
    }
}
