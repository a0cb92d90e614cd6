//! Values of a stretch times weights, chunk by chunk.

use std::{marker::PhantomData, ops::Range};

use super::{
    super::{
        CHUNK,
        ahead::NeededLines,
        lanes::bytes::{ByteLanes, join},
        spans::SeenSpan,
        stretch::{ComingKeys, StretchWork, tiles},
    },
    PAGES,
    mixing::MixedPages,
    shares::RoundedShares,
};
use crate::{
    cache::{PAGE, PageBlocks, ValueBlock},
    linear::QUANT_BLOCK,
};

/// A chunk and its pages that the stretch has, one at least.
#[derive(Clone)]
struct ChunkPages {
    chunk: usize,
    pages: Range<usize>,
}

impl ChunkPages {
    /// The first slot.
    #[inline(always)]
    fn first(&self) -> usize {
        self.pages.start * PAGE
    }

    /// Number of slots.
    #[inline(always)]
    fn width(&self) -> usize {
        self.pages.len() * PAGE
    }
}

impl<'a, L: ByteLanes> StretchWork<'a, '_, L, PageBlocks> {
    /// Sums values times weights; keys that are `coming` are needed next.
    #[inline(always)]
    pub(super) fn mix_bytes(&mut self, spans: &[SeenSpan], coming: &ComingKeys<'_>) {
        let (queries, blocks) = (spans.len(), self.blocks());
        let sums = self.stretch.chunks().len() * queries;
        // What is not written is not read.
        self.scratch.values.resize(sums * self.item.head_dim, 0.0);
        let shares = &mut self.scratch.shares;
        shares.halves.resize(2 * queries * blocks * CHUNK, 0);
        shares.units.resize(queries * blocks, 0.0);
        shares.branches.resize(queries * blocks, [0; QUANT_BLOCK]);
        shares.unrounded.resize(CHUNK, 0.0);
        for chunk in self.stretch.chunks() {
            let own = self.stretch.pages();
            let from = (chunk * PAGES).clamp(own.start, own.end - 1);
            let pages = from..((chunk + 1) * PAGES).clamp(from + 1, own.end);
            let of = ChunkPages { chunk, pages };
            self.share(spans, &of);
            for tile in tiles(queries, L::QUERIES) {
                for block in 0..blocks {
                    let place = (tile.start, queries);
                    with_count!(N = tile.len(), of L::QUERIES => {
                        self.mix_block::<N>(&of, place, block, coming);
                    });
                }
            }
        }
    }

    /// Makes shares of the weights that all queries have in a chunk, and sums over what they see of branches.
    #[inline(always)]
    fn share(&mut self, spans: &[SeenSpan], of: &ChunkPages) {
        let blocks = self.blocks();
        let mut scratch = std::mem::take(&mut self.scratch.shares);
        let (first, width) = (of.first(), of.width());
        let offset = first - self.stretch.first_page * PAGE;
        let place = |position: usize| position.clamp(first, first + width) - first;
        for block in 0..blocks {
            let values = self.values(of, block);
            for (query, span) in spans.iter().enumerate() {
                let seen = span.in_chunk(of.chunk);
                // Of the trunk, whose slots are positions.
                let from = place(seen.start.min(span.trunk));
                let to = place(seen.end.min(span.trunk)).max(from);
                let branch = if self.stretch.has_branch(span) {
                    seen.start.max(span.trunk)..seen.end
                } else {
                    0..0
                };
                scratch.branch.clear();
                scratch.branch.extend(branch.clone().map(|position| {
                    let (value, slot) = self.of_branch(query, span, position, block);
                    (position - first, value.scales[slot].to_f32())
                }));
                let sum = query * blocks + block;
                let halves = &mut scratch.halves[2 * sum * CHUNK..][..2 * CHUNK];
                let (high, low) = halves.split_at_mut(CHUNK);
                scratch.units[sum] = L::run(RoundedShares::<L> {
                    weights: &self.scratch.scores[query * self.width + offset..][..width],
                    values: &values,
                    trunk: from..to,
                    branch: &scratch.branch,
                    shares: scratch.unrounded.first_chunk_mut().expect("a chunk's"),
                    high,
                    low,
                    lanes: PhantomData,
                });
                let sums = &mut scratch.branches[sum];
                sums.fill(0);
                for position in branch.clone() {
                    let at = position - first;
                    let share = join(std::mem::take(&mut high[at]), std::mem::take(&mut low[at]));
                    let (value, slot) = self.of_branch(query, span, position, block);
                    for (d, sum) in sums.iter_mut().enumerate() {
                        *sum += share * i32::from(value.quant(slot, d));
                    }
                }
            }
        }
        self.scratch.shares = scratch;
    }

    /// Block `block` of the values in each of a chunk's pages; the first again where there are fewer.
    #[inline(always)]
    fn values(&self, of: &ChunkPages, block: usize) -> [&'a ValueBlock; PAGES] {
        let mut values = [self.value(of.pages.start, block); PAGES];
        for (value, page) in values.iter_mut().zip(of.pages.clone()) {
            *value = self.value(page, block);
        }
        values
    }

    #[inline(always)]
    fn value(&self, page: usize, block: usize) -> &'a ValueBlock {
        &self.held(page).values(self.item.kv_head)[block]
    }

    /// A block of the values of a position that is in the branch which `span` ends in, and its slot in there.
    #[inline(always)]
    fn of_branch(
        &self,
        query: usize,
        span: &SeenSpan,
        position: usize,
        block: usize,
    ) -> (&'a ValueBlock, usize) {
        let row = self.item.row + query / self.item.group;
        let view = self.attention.views.view(self.item.segment, row);
        let slot = span.trunk + view.branch[position - span.trunk] as usize;
        (self.value(slot / PAGE, block), slot % PAGE)
    }

    /// Sums of the `N` queries from `first` on, of `queries`, over one block of the values in a chunk's pages.
    #[inline(always)]
    fn mix_block<const N: usize>(
        &mut self,
        of: &ChunkPages,
        (first, queries): (usize, usize),
        block: usize,
        coming: &ComingKeys<'_>,
    ) {
        let (blocks, head_dim) = (self.blocks(), self.item.head_dim);
        let ahead = self.ahead::<N>(of, (first, queries), block, coming);
        let shares = &self.scratch.shares;
        let sums: [usize; N] = std::array::from_fn(|n| (first + n) * blocks + block);
        let output = (of.chunk - self.stretch.chunks().start) * queries + first;
        L::run(MixedPages::<L, N> {
            values: &self.values(of, block)[..of.pages.len()],
            ahead: &ahead,
            halves: sums.map(|sum| {
                let halves = &shares.halves[2 * sum * CHUNK..][..2 * CHUNK];
                halves.as_chunks().0.first_chunk().expect("both halves")
            }),
            start: sums.map(|sum| &shares.branches[sum]),
            units: sums.map(|sum| shares.units[sum]),
            outputs: &mut self.scratch.values[output * head_dim + block * QUANT_BLOCK..],
            stride: head_dim,
            width: (head_dim - block * QUANT_BLOCK).min(QUANT_BLOCK),
            lanes: PhantomData,
        });
    }

    /// What of the coming keys is asked for while these queries go through a block of each of a chunk's pages.
    #[inline(always)]
    fn ahead<const N: usize>(
        &self,
        of: &ChunkPages,
        (first, queries): (usize, usize),
        block: usize,
        coming: &ComingKeys<'_>,
    ) -> [NeededLines; PAGES] {
        let mut ahead = [NeededLines::NONE; PAGES];
        if !self.is_shared() {
            let blocks = self.blocks();
            let part = first * blocks + block * N;
            for (ahead, page) in ahead.iter_mut().zip(of.pages.clone()) {
                let lines = coming.lines::<L, PageBlocks>(page - self.stretch.first_page);
                *ahead = lines.share(part..part + N, queries * blocks);
            }
        }
        ahead
    }
}
