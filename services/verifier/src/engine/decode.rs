//! Decoding without drafts on the engine thread: one token a forward.

use std::sync::Arc;
use std::time::Instant;

use model::engine::{StepRows, Task, TaskError, TaskProgress};
use peer::{Cost, CountedHistory};
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::logprobs::TokenLogprobs;
use speculation::pipeline::{DistributionError, Pipeline};

use super::logprobs;
use crate::scorer::{DecodeRun, DecodedToken};

/// Decodes with the target alone. It draws coupled noise, whatever the verification, so that its
/// tokens are those of coupled verification.
pub(super) struct DecodeTask {
    run: DecodeRun,
    pipeline: Pipeline,
    /// After the run's output.
    history: CountedHistory,
    /// Scratch of log probabilities.
    order: Vec<TokenId>,
    logits: Vec<f32>,
}

impl DecodeTask {
    /// Creates the task of `run`; `history` is that after its output.
    pub(super) fn new(run: DecodeRun, history: CountedHistory) -> Self {
        Self {
            pipeline: Pipeline::new(Arc::clone(&run.spec.sampling)),
            history,
            order: Vec::new(),
            logits: Vec::new(),
            run,
        }
    }

    /// Chooses a token from the logits `row`, which become probabilities.
    fn choose(
        &mut self,
        row: &mut [f32],
    ) -> Result<(TokenId, Option<TokenLogprobs>), DistributionError> {
        let spec = &self.run.spec;
        let probs = &mut row[..spec.vocab_size as usize];
        let position = self.run.position();
        if spec.logprobs.is_some() {
            self.logits.clear();
            self.logits.extend_from_slice(probs);
        }
        self.pipeline.probs(probs, &self.history, position)?;
        let token = choice(probs, &spec.noise, position);
        let top = spec.logprobs;
        let logprobs = top.map(|top| logprobs::of(&self.logits, token, top, &mut self.order));
        Ok((token, logprobs.transpose()?))
    }
}

impl Task for DecodeTask {
    fn tokens(&self) -> &[TokenId] {
        &self.run.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.run.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.run.tokens.len() - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> TaskProgress {
        let step = rows.timing;
        self.run.progress.count(step.forwarded_tokens);
        let began = Instant::now();
        let chosen = self.choose(rows.row_mut(0));
        let accept = began.elapsed();
        let (token, logprobs) = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                self.run.report(Err(error.into()));
                return TaskProgress::Done;
            }
        };
        self.history.push(token);
        let goes_on = self.run.push(DecodedToken {
            token,
            logprobs,
            cost: Cost { step, accept },
        });
        if goes_on {
            TaskProgress::Continue
        } else {
            TaskProgress::Done
        }
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        self.run.progress.part(done, total);
    }

    fn is_cancelled(&self) -> bool {
        self.run.is_cancelled()
    }

    fn fail(self: Box<Self>, error: TaskError) {
        self.run.report(Err(error.into()));
    }
}
