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
    lanes::{LaneNumber, Lanes},
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
        let first = tile.start;
        match tile.len() {
            8.. if const { L::TILE > 7 } => work.score_tile::<8, 2>(first, of, ahead),
            7 if const { L::TILE > 6 } => work.score_tile::<7, 2>(first, of, ahead),
            6 if const { L::TILE > 5 } => work.score_tile::<6, 4>(first, of, ahead),
            5 if const { L::TILE > 4 } => work.score_tile::<5, 4>(first, of, ahead),
            4 if const { L::TILE > 3 } => work.score_tile::<4, 4>(first, of, ahead),
            3 if const { L::TILE > 2 } => work.score_tile::<3, 4>(first, of, ahead),
            2 if const { L::SUMS >= 8 } => work.score_tile::<2, 4>(first, of, ahead),
            2 => work.score_tile::<2, 2>(first, of, ahead),
            _ => work.score_tile::<1, 4>(first, of, ahead),
        }
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
    /// The products of `N` queries with a page's keys, `B` blocks of them at a time.
    #[inline(always)]
    fn score_tile<const N: usize, const B: usize>(
        &mut self,
        first: usize,
        (page, blocks): (usize, usize),
        ahead: NeededLines,
    ) {
        let head_dim = self.item.head_dim;
        L::run(Products::<L, T, N, B> {
            queries: &self.queries.numbers[first * head_dim..][..N * head_dim],
            scale: self.attention.scoring.scale,
            keys: self.held(page).keys(self.item.kv_head),
            ahead,
            blocks,
            at: self.scores_at(first, page),
            scores: &mut self.scratch.scores,
            lanes: PhantomData,
        });
    }
}
