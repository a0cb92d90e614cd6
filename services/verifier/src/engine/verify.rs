//! A block of draft tokens over the rows of one forward: decided here, or its distributions sent to the coordinator,
//! which decides. Something may be told of the draft model.

use std::cell::RefCell;
use std::sync::Arc;

use peer::RoundError;
use speculation::certificate::Decided;
use speculation::pipeline::{Pipeline, Want};
use speculation::round::{self, BlockInput, RoundInputs, RoundScratch, TargetRows};
use speculation::target::TargetProbs;
use speculation::verification::Verdict;
use wire::{slice, v1};

use super::logprobs::of_emitted;
use super::tree;
use super::{RowConsumer, ScoringInput};

thread_local! {
    /// Rows of the engine's thread that every round writes to.
    static SCRATCH: RefCell<(RoundScratch<f32>, Vec<f32>)> = RefCell::default();
}

/// Decides `block`, a chain, by its rows of logits (drafts + 1, their length).
///
/// # Errors
/// If a row gives no distribution, or a draft distribution that is needed is missing or malformed.
fn verify_chain(
    block: &BlockInput,
    input: &mut ScoringInput,
    rows: (&mut [f32], usize),
) -> Result<Verdict, RoundError> {
    let spec = &Arc::clone(&input.spec);
    let greedy = spec.sampling.temperature == 0.0;
    let mut want = Want::of_target(spec.target.needs(greedy));
    want.unscaled |= spec.verification.reads_unscaled;
    let inputs = RoundInputs {
        target: &spec.target,
        verification: spec.verification,
        greedy,
        block,
        base_len: input.base_len as u32,
        ends: &spec.sampling.end_tokens,
        vocab_size: spec.vocab_size as usize,
    };
    SCRATCH.with_borrow_mut(|(scratch, unscaled)| {
        let rows = LogitRows::new(input, want, rows, unscaled);
        round::decide(inputs, spec.noise, rows, scratch)
    })
}

/// A block that is decided here.
impl RowConsumer for BlockInput {
    type Output = Decided;

    fn evaluate(
        &mut self,
        input: &mut ScoringInput,
        (rows, row_len): (&mut [f32], usize),
    ) -> Result<Decided, RoundError> {
        // Deciding turns the logits into distributions, in place.
        let logits = input.spec.logprobs.map(|top| (top, rows.to_vec()));
        let verdict = if self.drafts.is_chain() {
            verify_chain(self, input, (rows, row_len))?
        } else {
            tree::verify(self, input, (rows, row_len))?
        };
        let vocab_size = input.spec.vocab_size as usize;
        let logprobs = match logits {
            Some((top, logits)) => of_emitted(&verdict, top, (&logits, row_len), vocab_size)?,
            None => Vec::new(),
        };
        Ok(Decided { verdict, logprobs })
    }

    fn parents(&self) -> &[Option<u32>] {
        self.drafts.parents()
    }
}

/// What is wanted of each position of a chain that the coordinator decides.
impl RowConsumer for v1::SliceRequest {
    /// One slice a position, headers still to be set.
    type Output = Vec<v1::Slice>;

    fn evaluate(
        &mut self,
        input: &mut ScoringInput,
        rows: (&mut [f32], usize),
    ) -> Result<Vec<v1::Slice>, RoundError> {
        let want = Want {
            max: self.confidences,
            entropy: self.confidences,
            unscaled: self.unscaled,
        };
        let mut unscaled = Vec::new();
        let drafts = input.drafts().0.len();
        let mut rows = LogitRows::new(input, want, rows, &mut unscaled);
        (0..=drafts)
            .map(|offset| {
                let distributions = rows.distributions(offset)?;
                let unscaled = distributions.unscaled.filter(|_| self.unscaled);
                let mut slice = slice::to_wire(
                    offset,
                    distributions.probs,
                    unscaled,
                    distributions.confidence,
                    self.top,
                );
                slice.last = offset == drafts;
                Ok(slice)
            })
            .collect()
    }
}

/// The rows of a forward along a chain, made distributions as they are needed.
struct LogitRows<'a> {
    input: &'a mut ScoringInput,
    pipeline: Pipeline,
    /// Logits (drafts + 1, `row_len`); a row that was requested has been turned into a distribution.
    rows: &'a mut [f32],
    row_len: usize,
    want: Want,
    /// RoundScratch.
    unscaled: &'a mut Vec<f32>,
}

impl<'a> LogitRows<'a> {
    /// Returns the distributions after the output and each prefix of the drafts of `input`, of the logits `rows`
    /// (drafts + 1, `row_len`); `unscaled` is scratch.
    fn new(
        input: &'a mut ScoringInput,
        want: Want,
        (rows, row_len): (&'a mut [f32], usize),
        unscaled: &'a mut Vec<f32>,
    ) -> Self {
        Self {
            pipeline: Pipeline::new(Arc::clone(&input.spec.sampling)),
            input,
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
        let vocab_size = self.input.spec.vocab_size as usize;
        let position = (self.input.base_len + offset) as u32;
        let (drafts, history) = self.input.drafts();
        let before = offset.checked_sub(1);
        if let Some(&draft) = before.and_then(|before| drafts.get(before)) {
            history.push(draft);
        }
        let probs = &mut self.rows[offset * self.row_len..][..vocab_size];
        let observed =
            self.pipeline
                .distributions(probs, self.unscaled, self.want, history, position)?;
        Ok(TargetProbs {
            probs,
            unscaled: observed.unscaled.then_some(&self.unscaled[..]),
            confidence: observed.confidence.unwrap_or_default(),
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        let vocab_size = self.input.spec.vocab_size as usize;
        &self.rows[offset * self.row_len..][..vocab_size]
    }
}
