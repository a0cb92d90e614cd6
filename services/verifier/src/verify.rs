//! Deciding one draft block, of which something may be told of the draft model.

use std::cell::RefCell;
use std::sync::Arc;

use peer::RoundError;
use speculation::TokenId;
use speculation::pipeline::Want;
use speculation::proposal::Proposal;
use speculation::round::{self, RoundInputs, Scratch};
use speculation::verification::layers::{Horizon, Layer};
use speculation::verification::{self, Verdict};

use crate::rows::LogitRows;
use crate::scoring::{Block, Judge};

thread_local! {
    /// Rows of the engine's thread that every round writes to.
    static SCRATCH: RefCell<(Scratch<f32>, Vec<f32>)> = RefCell::default();
}

/// What is to be decided.
#[derive(Default)]
pub(crate) struct VerifyInput {
    pub(crate) drafts: Vec<TokenId>,
    /// What was told of the draft model, at each draft token.
    pub(crate) proposals: Vec<Proposal>,
    /// The same at the position after them.
    pub(crate) bonus: Option<Proposal>,
    pub(crate) horizon: Horizon,
    pub(crate) layers: Vec<Layer>,
}

impl Judge for VerifyInput {
    type Verdict = Verdict;

    fn judge(
        &mut self,
        block: &mut Block,
        rows: (&mut [f32], usize),
    ) -> Result<Verdict, RoundError> {
        let spec = &Arc::clone(&block.spec);
        let greedy = spec.sampling.temperature == 0.0;
        let mut want = Want::of_target(spec.target.needs(greedy));
        want.unscaled |= spec.verification.reads_unscaled;
        let inputs = RoundInputs {
            target: &spec.target,
            verification: spec.verification,
            greedy,
            drafts: &self.drafts,
            proposals: &self.proposals,
            bonus: self.bonus.as_ref(),
            vocab_size: spec.vocab_size as usize,
        };
        let requested = verification::Block {
            drafts: &self.drafts,
            base_len: block.base_len as u32,
            ends: &spec.sampling.end_tokens,
            horizon: self.horizon,
            layers: &self.layers,
        };
        SCRATCH.with_borrow_mut(|(scratch, unscaled)| {
            let rows = LogitRows::new(block, want, rows, unscaled);
            round::decide(inputs, &requested, spec.noise, rows, scratch)
        })
    }
}
