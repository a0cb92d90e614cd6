//! Decoding on the engine thread: a forward a token, or fewer with the drafts that have come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::engine::{Awaited, StepRows, Task, TaskError, TaskProgress};
use peer::{Cost, CountedHistory, RoundError};
use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use speculation::pipeline::Pipeline;
use speculation::verification::Verdict;
use speculation::verification::tree;

use super::logprobs;
use super::tree::PathRows;
use crate::scorer::{DecodeRun, DecodedForward};

/// Decodes with the target alone. It draws coupled noise, whatever the verification, so that its tokens are those of
/// coupled verification: drafts decide how many of them a forward gives, and nothing else.
pub(super) struct DecodeTask {
    run: DecodeRun,
    pipeline: Pipeline,
    /// After the run's output.
    history: CountedHistory,
    /// Drafts at the end of the run's tokens, from [`Task::prepare`] to the step.
    block: DraftTree,
    /// Scratch of log probabilities: logits of the rows along the path that was walked.
    logits: Vec<f32>,
    order: Vec<TokenId>,
}

impl DecodeTask {
    /// Creates the task of `run`; `history` is that after its output.
    pub(super) fn new(run: DecodeRun, history: CountedHistory) -> Self {
        Self {
            pipeline: Pipeline::new(Arc::clone(&run.spec.sampling)),
            history,
            block: DraftTree::default(),
            logits: Vec::new(),
            order: Vec::new(),
            run,
        }
    }

    /// Number of tokens before the drafts.
    fn own(&self) -> usize {
        self.run.tokens.len() - self.block.len()
    }

    /// Chooses the tokens of a forward from its logits `rows`, which become probabilities along the accepted path only.
    fn choose(&mut self, rows: &mut StepRows<'_>) -> Result<Verdict, RoundError> {
        let (spec, position) = (&self.run.spec, self.run.position());
        self.logits.clear();
        let mut path = PathRows {
            pipeline: &mut self.pipeline,
            history: &mut self.history,
            nodes: self.block.tokens(),
            position,
            vocab_size: spec.vocab_size as usize,
            row_len: rows.vocab_size,
            rows: &mut *rows.logits,
            read: spec.logprobs.map(|_| &mut self.logits),
        };
        let ends = &spec.sampling.end_tokens;
        tree::verify(&self.block, position, ends, &spec.noise, &mut path)
    }

    /// Returns the result of a forward whose tokens `verdict` chose.
    fn decoded(&mut self, verdict: &Verdict, cost: Cost) -> Result<DecodedForward, RoundError> {
        let spec = &self.run.spec;
        let rows = self.logits.chunks_exact(spec.vocab_size as usize);
        let order = &mut self.order;
        let logprobs = spec.logprobs.iter().flat_map(|&top| {
            let chosen = rows.clone().zip(&verdict.emitted);
            chosen.map(move |(row, &token)| (row, token, top))
        });
        let logprobs = logprobs.map(|(row, token, top)| logprobs::of(row, token, top, order));
        Ok(DecodedForward {
            logprobs: logprobs.collect::<Result<_, _>>()?,
            tokens: verdict.emitted.clone(),
            cost,
            drafts: None,
        })
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
        self.own() - 1
    }

    fn parents(&self) -> &[Option<u32>] {
        self.block.parents()
    }

    fn takes_drafts(&self) -> bool {
        self.run.drafts.is_some()
    }

    fn offer(&mut self, chain: bool, worth: &mut Vec<f32>) {
        if let Some((drafts, levels)) = self.run.received(self.history.constraint()) {
            worth.extend(drafts.offer(levels, chain));
        }
    }

    fn prepare(&mut self, drafts: usize) {
        self.run.tokens.truncate(self.own());
        let pending = self.run.drafts.as_deref_mut();
        self.block = pending.map_or_else(DraftTree::default, |it| it.prepare(drafts).clone());
        self.run.tokens.extend_from_slice(self.block.tokens());
    }

    fn awaited(&mut self, forward: Duration) -> Awaited {
        let received = self.run.received(self.history.constraint());
        received.map_or(Awaited::Nothing, |(drafts, _)| drafts.awaited(forward))
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> TaskProgress {
        let step = rows.timing;
        self.run.progress.count(step.forwarded_tokens);
        let began = Instant::now();
        self.run.tokens.truncate(self.own());
        let chosen = self.choose(&mut rows);
        self.block = DraftTree::default();
        let decided = chosen.and_then(|verdict| {
            let accept = began.elapsed();
            let decoded = self.decoded(&verdict, Cost { step, accept })?;
            Ok((verdict, decoded))
        });
        let (verdict, decoded) = match decided {
            Ok(decided) => decided,
            Err(error) => {
                self.run.report(Err(error));
                return TaskProgress::Done;
            }
        };
        // Accepted drafts were pushed to the history as the path was walked; only the added token is new.
        if let Some(&token) = verdict.emitted.get(verdict.path.len()) {
            self.history.push(token);
        }
        let goes_on = self.run.push(decoded, (&verdict.path, verdict.last));
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
