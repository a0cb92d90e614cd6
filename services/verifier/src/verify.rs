//! A chain of draft tokens over the rows of one forward: decided here, or its distributions sent to the coordinator,
//! which decides. Something may be told of the draft model.

use std::cell::RefCell;
use std::sync::Arc;

use peer::RoundError;
use speculation::TokenId;
use speculation::history::History;
use speculation::pipeline::{Pipeline, Want};
use speculation::proposal::Proposal;
use speculation::round::{self, RoundInputs, RoundScratch, TargetRows};
use speculation::target::TargetProbs;
use speculation::verification::layers::{Horizon, ResidualLayer};
use speculation::verification::{self, Verdict};
use wire::{slice, v1};

use crate::scoring::{Block, Judge};

thread_local! {
    /// Rows of the engine's thread that every round writes to.
    static SCRATCH: RefCell<(RoundScratch<f32>, Vec<f32>)> = RefCell::default();
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
    pub(crate) layers: Vec<ResidualLayer>,
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
        let requested = verification::DraftChain {
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

/// What is wanted of each position of a chain that the coordinator decides.
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

/// The rows of a forward along a chain, made distributions as they are needed.
struct LogitRows<'a> {
    pipeline: Pipeline,
    history: &'a mut History,
    base_len: u32,
    drafts: &'a [TokenId],
    vocab_size: usize,
    /// Logits (drafts + 1, `row_len`); a row that was requested has been turned into a distribution.
    rows: &'a mut [f32],
    row_len: usize,
    want: Want,
    unscaled: &'a mut Vec<f32>,
}

impl<'a> LogitRows<'a> {
    /// The distributions after the output and each prefix of the drafts of `block`, of the logits `rows`
    /// (drafts + 1, `row_len`); `unscaled` is scratch.
    fn new(
        block: &'a mut Block,
        want: Want,
        (rows, row_len): (&'a mut [f32], usize),
        unscaled: &'a mut Vec<f32>,
    ) -> Self {
        let spec = Arc::clone(&block.spec);
        let base_len = block.base_len as u32;
        let (drafts, history) = block.drafts();
        Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history,
            base_len,
            drafts,
            vocab_size: spec.vocab_size as usize,
            rows,
            row_len,
            want,
            unscaled,
        }
    }
}

impl TargetRows<f32> for LogitRows<'_> {
    type Error = RoundError;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, RoundError> {
        let before = offset.checked_sub(1);
        if let Some(&draft) = before.and_then(|before| self.drafts.get(before)) {
            self.history.push(draft);
        }
        let probs = &mut self.rows[offset * self.row_len..][..self.vocab_size];
        let position = self.base_len + offset as u32;
        let observed =
            self.pipeline
                .distributions(probs, self.unscaled, self.want, self.history, position)?;
        Ok(TargetProbs {
            probs,
            unscaled: observed.unscaled.then_some(&self.unscaled[..]),
            confidence: observed.confidence.unwrap_or_default(),
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.rows[offset * self.row_len..][..self.vocab_size]
    }
}
