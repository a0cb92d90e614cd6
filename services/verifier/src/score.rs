//! Slices of the distribution of one draft block, which the coordinator decides.

use peer::RoundError;
use speculation::pipeline::Want;
use speculation::round::TargetRows;
use wire::{slice, v1};

use crate::rows::LogitRows;
use crate::scoring::{Block, Judge};

/// What is wanted of each position.
pub(crate) struct Wanted(pub(crate) v1::SliceRequest);

impl Judge for Wanted {
    /// One slice a position, headers still to be set.
    type Verdict = Vec<v1::Slice>;

    fn judge(
        &mut self,
        block: &mut Block,
        rows: (&mut [f32], usize),
    ) -> Result<Vec<v1::Slice>, RoundError> {
        let Self(wanted) = *self;
        let want = Want {
            max: wanted.confidences,
            entropy: wanted.confidences,
            unscaled: wanted.unscaled,
        };
        let mut unscaled = Vec::new();
        let drafts = block.drafts().0.len();
        let mut rows = LogitRows::new(block, want, rows, &mut unscaled);
        (0..=drafts)
            .map(|offset| {
                let distributions = rows.distributions(offset)?;
                let unscaled = distributions.unscaled.filter(|_| wanted.unscaled);
                let top = wanted.top;
                let mut slice = slice::to_wire(
                    offset,
                    distributions.probs,
                    unscaled,
                    distributions.confidence,
                    top,
                );
                slice.last = offset == drafts;
                Ok(slice)
            })
            .collect()
    }
}
