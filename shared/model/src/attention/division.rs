//! How the work of one attention is divided: into items, and among threads.

use super::{Attention, CHUNK, spans::Reach, together};

/// The queries of one key head, of some rows of one segment, over all that they see or over a piece of it.
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
    /// What it covers.
    pub(super) reach: Reach,
    /// Whether what the queries see begins here.
    pub(super) is_first: bool,
    /// Whether what the queries see ends here.
    pub(super) is_last: bool,
}

impl WorkItem {
    /// Numbers of a row's queries, and of its results.
    pub(super) fn width(&self) -> usize {
        self.group * self.head_dim
    }

    /// Number of queries.
    pub(super) fn queries(&self) -> usize {
        self.rows * self.group
    }

    /// Whether it covers all that its queries see.
    pub(super) fn is_whole(&self) -> bool {
        self.is_first && self.is_last
    }

    /// Multiply-adds for each slot.
    fn slot_work(&self) -> usize {
        2 * self.queries() * self.head_dim
    }

    /// Multiply-adds, about.
    fn work(&self) -> usize {
        self.slot_work() * (self.reach.slots - self.reach.from)
    }

    /// Cuts off a piece of about `work` multiply-adds, whole chunks from the front on; `None` where that is
    /// nothing. What is left is nothing where the piece is all.
    fn cut(self, work: usize) -> Option<(Self, Option<Self>)> {
        let slot = self.reach.from + work / self.slot_work().max(1);
        let chunk = ((slot + CHUNK / 2) / CHUNK).min(self.reach.tail);
        if chunk * CHUNK <= self.reach.from {
            return None;
        }
        if chunk >= self.reach.end_chunk {
            return Some((self, None));
        }
        let (mut piece, mut rest) = (self, self);
        piece.reach.slots = chunk * CHUNK;
        piece.reach.end_chunk = chunk;
        piece.is_last = false;
        rest.reach.from = chunk * CHUNK;
        rest.is_first = false;
        Some((piece, Some(rest)))
    }
}

impl Attention<'_> {
    /// Cuts the batch into items: a key head's queries of some rows of a segment. Returns their work, in
    /// multiply-adds.
    pub(super) fn divide(&self, query_dim: usize, items: &mut Vec<WorkItem>) -> usize {
        items.clear();
        let mut first = 0;
        for segment in 0..self.views.segments() {
            let cache = self.views.cache(segment);
            let group = query_dim / cache.head_dim() / cache.kv_heads();
            let rows = self.views.rows(segment);
            let together = together(group);
            for row in (0..rows).step_by(together) {
                let count = together.min(rows - row);
                let seen = (row..row + count).map(|row| self.seen(segment, row));
                let reach = Reach::of(seen);
                items.extend((0..cache.kv_heads()).map(|kv_head| WorkItem {
                    segment,
                    row,
                    rows: count,
                    batch_row: first + row,
                    kv_head,
                    group,
                    head_dim: cache.head_dim(),
                    places: rows <= together,
                    reach,
                    is_first: true,
                    is_last: true,
                }));
            }
            first += rows;
        }
        items.iter().map(WorkItem::work).sum()
    }

    /// Deals `items`, of `work` multiply-adds, to `threads`, about as much to each: `give` is told the thread and what
    /// it gets. Each gets neighbours, so that it mostly has the heads that it brought to their positions; of a long
    /// sequence it gets whole chunks.
    pub(super) fn deal(
        &self,
        items: &[WorkItem],
        work: usize,
        threads: usize,
        mut give: impl FnMut(usize, WorkItem),
    ) {
        let (mut part, mut before) = (0, 0);
        for item in items {
            let mut rest = Some(*item);
            while let Some(mut item) = rest.take() {
                let end = work * (part + 1) / threads;
                if part + 1 < threads && before + item.work() > end {
                    let Some((piece, later)) = item.cut(end.saturating_sub(before)) else {
                        part += 1;
                        rest = Some(item);
                        continue;
                    };
                    item = piece;
                    rest = later;
                }
                if !item.is_whole() && item.places {
                    // SAFETY: nobody attends yet, and no item places the head again.
                    unsafe {
                        self.views.place(item.segment, item.batch_row, item.kv_head);
                    }
                    rest = rest.map(|rest| WorkItem {
                        places: false,
                        ..rest
                    });
                    item.places = false;
                }
                before += item.work();
                give(part, item);
            }
        }
    }
}
