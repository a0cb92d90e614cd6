//! The pieces of items that threads shared, added up.

use speculation::simd::Kernel;

use super::{kernel::PartScratch, partials::RunningSum};

/// Adds up the pieces of items that are among one thread's.
pub(super) struct MergedPieces<'a> {
    pub(super) part: &'a PartScratch,
    /// Of the item whose pieces come one after the other, `(queries)`.
    pub(super) sums: &'a mut Vec<RunningSum>,
    /// `(rows, query_dim)`.
    pub(super) output: &'a mut [f32],
    pub(super) query_dim: usize,
}

impl Kernel for MergedPieces<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (mut chunks, mut values) = (
            self.part.piece_sums.as_slice(),
            self.part.piece_values.as_slice(),
        );
        for item in self.part.items.iter().filter(|item| !item.is_whole()) {
            if item.is_first {
                self.sums.clear();
                self.sums.resize(item.queries(), RunningSum::NOTHING);
            }
            let count = item.reach.stretches().map(|of| of.chunks().len()).sum();
            for chunk in 0..count {
                for (query, sum) in self.sums.iter_mut().enumerate() {
                    let row = item.batch_row + query / item.group;
                    let at = row * self.query_dim
                        + item.kv_head * item.width()
                        + query % item.group * item.head_dim;
                    let output = &mut self.output[at..][..item.head_dim];
                    if item.is_first && chunk == 0 {
                        output.fill(0.0);
                    }
                    let (own, later) = values.split_at(item.head_dim);
                    values = later;
                    if chunks[query].is_seen() {
                        sum.add(output, chunks[query], own);
                    }
                    if item.is_last && chunk + 1 == count {
                        sum.divide(output);
                    }
                }
                chunks = &chunks[item.queries()..];
            }
        }
    }
}
