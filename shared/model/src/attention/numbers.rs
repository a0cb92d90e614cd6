//! Attention to pages of numbers: chains of fused multiply-adds.

mod mixing;
mod products;
mod weighted;

use std::{marker::PhantomData, ops::Range};

use self::products::Products;
use super::{
    Attention,
    ahead::NeededLines,
    division::WorkItem,
    lanes::{LaneNumber, Lanes, side_by_side},
    scratch::PackedQueries,
    spans::SeenSpan,
    stretch::{ComingKeys, HeldFormat, StretchWork, tiles},
};
use crate::cache::{PageFormat, PageNumbers};

impl<L: Lanes, T: LaneNumber> HeldFormat<L> for PageNumbers<T>
where
    Self: PageFormat,
{
    const TILE: usize = L::TILE;

    /// So that a loop over the dimensions reads on.
    #[inline(always)]
    fn pack(attention: &Attention<'_>, item: &WorkItem, packed: &mut PackedQueries) {
        let (head_dim, packed) = (item.head_dim, &mut packed.numbers);
        // What is left over is written below.
        packed.resize(item.queries() * head_dim, 0.0);
        for tile in tiles(item.queries(), L::TILE) {
            let packed = &mut packed[tile.start * head_dim..][..tile.len() * head_dim];
            for (n, index) in tile.clone().enumerate() {
                let query = attention.query(item, index);
                for (packed, number) in packed.chunks_exact_mut(tile.len()).zip(query) {
                    packed[n] = *number;
                }
            }
        }
    }

    #[inline(always)]
    fn key_lines(&self, kv_head: usize) -> NeededLines {
        NeededLines::of(self.keys(kv_head))
    }

    #[inline(always)]
    fn value_lines(&self, kv_head: usize) -> NeededLines {
        NeededLines::of(self.values(kv_head))
    }

    #[inline(always)]
    fn score(
        work: &mut StretchWork<'_, '_, L, Self>,
        tile: Range<usize>,
        of: (usize, usize),
        ahead: NeededLines,
    ) {
        with_count!(N = tile.len(), of L::TILE => work.score_tile::<N>(tile.start, of, ahead));
    }

    #[inline(always)]
    fn mix(work: &mut StretchWork<'_, '_, L, Self>, spans: &[SeenSpan], coming: &ComingKeys<'_>) {
        work.mix_numbers(spans, coming);
    }
}

impl<L: Lanes, T: LaneNumber> StretchWork<'_, '_, L, PageNumbers<T>>
where
    PageNumbers<T>: HeldFormat<L>,
{
    /// The products of the `N` queries from `first` on with keys of a page, some blocks of them at a time.
    #[inline(always)]
    fn score_tile<const N: usize>(&mut self, first: usize, of: (usize, usize), ahead: NeededLines) {
        match const { side_by_side(L::SUMS, N) } {
            4 => L::run(self.products::<N, 4>(first, of, ahead)),
            2 => L::run(self.products::<N, 2>(first, of, ahead)),
            _ => L::run(self.products::<N, 1>(first, of, ahead)),
        }
    }

    #[inline(always)]
    fn products<const N: usize, const B: usize>(
        &mut self,
        first: usize,
        (page, blocks): (usize, usize),
        ahead: NeededLines,
    ) -> Products<'_, L, T, N, B> {
        let head_dim = self.item.head_dim;
        Products {
            queries: &self.queries.numbers[first * head_dim..][..N * head_dim],
            scale: self.attention.scoring.scale,
            keys: self.held(page).keys(self.item.kv_head),
            ahead,
            blocks,
            at: self.scores_at(first, page),
            scores: &mut self.scratch.scores,
            lanes: PhantomData,
        }
    }
}
