//! Attention to pages of blocks: products of bytes, which are exact.
//!
//! A query is quantised as blocks of keys are: q = s_q i, of 32 dimensions each. With a key k = s_k j the score is the
//! sum over the blocks of float(sum i j) s_k s_q, in the blocks' order, as chains of fused multiply-adds.
//!
//! Of the values, query by query and chunk by chunk: the weights w_t that the query has there, times the scales s_t of
//! the values v_t = s_t j_t, are the shares u_t = w_t s_t of the block. They are rounded to 14 bits,
//! u_t = U i_t / 16383 with the largest U, and the weighted values are float(sum i_t j_t) U / 16383. Rounding is within
//! 1/32766 of the largest share in the chunk, where values themselves have 1/254 of the largest in their block.
//!
//! Sums of whole numbers have one result in whatever order: the slots of a branch need not be read in that of their
//! positions.

mod mixing;
mod products;
mod shares;
mod weighted;

use std::{marker::PhantomData, ops::Range};

use self::products::ByteProducts;
use super::{
    Attention, CHUNK,
    ahead::NeededLines,
    division::WorkItem,
    lanes::{bytes::ByteLanes, side_by_side},
    scratch::PackedQueries,
    spans::SeenSpan,
    stretch::{ComingKeys, HeldFormat, StretchWork, tiles},
};
use crate::{
    cache::{PAGE, PageBlocks},
    linear::{InputBlock, QUANT_BLOCK},
};

/// Pages of a chunk.
const PAGES: usize = CHUNK / PAGE;

impl<L: ByteLanes> HeldFormat<L> for PageBlocks {
    const TILE: usize = L::QUERIES;

    #[inline(always)]
    fn pack(attention: &Attention<'_>, item: &WorkItem, packed: &mut PackedQueries) {
        let (blocks, packed) = (item.head_dim.div_ceil(QUANT_BLOCK), &mut packed.blocks);
        // What is left over is written below.
        packed.resize(item.queries() * blocks, InputBlock::ZERO);
        for tile in tiles(item.queries(), L::QUERIES) {
            let packed = &mut packed[tile.start * blocks..][..tile.len() * blocks];
            for (n, index) in tile.clone().enumerate() {
                let query = attention.query(item, index).chunks(QUANT_BLOCK);
                for (packed, numbers) in packed.chunks_exact_mut(tile.len()).zip(query) {
                    packed[n] = InputBlock::of(numbers);
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
        with_count!(N = tile.len(), of L::QUERIES => work.score_bytes::<N>(tile.start, of, ahead));
    }

    #[inline(always)]
    fn mix(work: &mut StretchWork<'_, '_, L, Self>, spans: &[SeenSpan], coming: &ComingKeys<'_>) {
        work.mix_bytes(spans, coming);
    }
}

impl<L: ByteLanes> StretchWork<'_, '_, L, PageBlocks> {
    /// Blocks of a head.
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.item.head_dim.div_ceil(QUANT_BLOCK)
    }

    /// The products of the `N` queries from `first` on with keys of a page, some sixteens of slots at a time. Each has
    /// two sums: of a block, and of those before.
    #[inline(always)]
    fn score_bytes<const N: usize>(
        &mut self,
        first: usize,
        of: (usize, usize),
        ahead: NeededLines,
    ) {
        match const { side_by_side(L::SUMS / 2, N) } {
            4 => L::run(self.products::<N, 4>(first, of, ahead)),
            2 => L::run(self.products::<N, 2>(first, of, ahead)),
            _ => L::run(self.products::<N, 1>(first, of, ahead)),
        }
    }

    #[inline(always)]
    fn products<const N: usize, const B: usize>(
        &mut self,
        first: usize,
        (page, slots): (usize, usize),
        ahead: NeededLines,
    ) -> ByteProducts<'_, L, N, B> {
        let blocks = self.blocks();
        ByteProducts {
            queries: &self.queries.blocks[first * blocks..][..N * blocks],
            scale: self.attention.scoring.scale,
            keys: self.held(page).keys(self.item.kv_head),
            ahead,
            slots,
            at: self.scores_at(first, page),
            scores: &mut self.scratch.scores,
            lanes: PhantomData,
        }
    }
}
