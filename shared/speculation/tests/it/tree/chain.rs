//! The distributions of one block, given as rows.

use speculation::proposal::BadProposal;
use speculation::real::Real;
use speculation::verification::{PositionDistributions, RoundDistributions};

/// Target model's distributions and draft distributions along a block, without rounding on the way. A draft
/// distribution that is not given is not sent.
pub(crate) struct Chain<F> {
    target: Vec<Vec<F>>,
    draft: Vec<Vec<F>>,
    scratch: Vec<F>,
}

impl<F: Real> Chain<F> {
    pub(crate) fn new(target: Vec<Vec<F>>, draft: Vec<Vec<F>>) -> Self {
        Self {
            target,
            draft,
            scratch: Vec::new(),
        }
    }
}

impl<F: Real> RoundDistributions<F> for Chain<F> {
    type Error = BadProposal;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, F>, BadProposal> {
        self.scratch.clear();
        self.scratch
            .extend(self.draft.get(offset).into_iter().flatten());
        Ok(PositionDistributions {
            target: &self.target[offset],
            target_unscaled: None,
            draft: &mut self.scratch,
        })
    }
}
