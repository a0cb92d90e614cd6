//! Deciding one draft block on the engine thread: one forward.

use std::sync::Arc;

use model::engine::{EngineError, Progress, StepFigures, StepRows, Task};
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::history::History;
use speculation::noise::InnerCall;
use speculation::pipeline::{LawError, Pipeline};
use speculation::proposal::Proposal;
use speculation::verification::{Verdict, Verification, coupled, token};
use tokio::sync::oneshot;
use wire::open::SessionSpec;

use crate::error::RoundError;
use crate::session::Session;

/// What a task answers.
pub(crate) type Decision = Result<(Verdict, StepFigures), RoundError>;

/// Scores a block and decides it.
pub(crate) struct VerifyTask {
    spec: Arc<SessionSpec>,
    /// Prompt, output and drafts.
    tokens: Vec<TokenId>,
    base_len: usize,
    proposals: Vec<Proposal>,
    answer: Option<oneshot::Sender<Decision>>,
}

impl VerifyTask {
    /// A task that decides `drafts` on top of the session's output, with the channel it answers on.
    pub(crate) fn new(
        session: &Session,
        drafts: &[TokenId],
        proposals: Vec<Proposal>,
    ) -> (Self, oneshot::Receiver<Decision>) {
        let (answer, receiver) = oneshot::channel();
        let task = Self {
            spec: Arc::clone(&session.spec),
            tokens: session.sequence(drafts),
            base_len: session.committed.tokens().len(),
            proposals,
            answer: Some(answer),
        };
        (task, receiver)
    }

    fn decide(&self, logits: &mut [f32], row_len: usize) -> Result<Verdict, RoundError> {
        let spec = &self.spec;
        let (context, drafts) = self.tokens.split_at(spec.prompt.len() + self.base_len);
        let output = &context[spec.prompt.len()..];
        let base_len = self.base_len as u32;
        let ends = &spec.sampling.end_tokens;
        let mut laws = Laws::new(spec, output, drafts, logits, row_len);
        match spec.verification {
            Verification::Coupled => {
                let next = |offset| laws.next(offset).map_err(RoundError::from);
                coupled::verify(drafts, base_len, &spec.noise, ends, next)
            }
            Verification::Token => {
                let mut chance = RoundChance::new(spec.noise, base_len, InnerCall::default());
                let vocab_size = spec.vocab_size as usize;
                let draft_law = |offset: usize, law: &mut Vec<f32>| {
                    law.resize(vocab_size, 0.0);
                    let proposal: &Proposal = &self.proposals[offset];
                    proposal
                        .write_law(drafts[offset], law)
                        .map_err(RoundError::from)
                };
                let next = |offset| laws.next(offset).map_err(RoundError::from);
                token::verify(drafts, ends, &mut chance, draft_law, next)
            }
        }
    }

    fn answer(&mut self, decision: Decision) {
        if let Some(answer) = self.answer.take() {
            // The receiver is gone if nobody waits any more.
            let _ = answer.send(decision);
        }
    }
}

impl Task for VerifyTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.spec.prompt.len() + self.base_len - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> Progress {
        let figures = rows.figures();
        let row_len = rows.vocab_size();
        let verdict = self.decide(rows.logits_mut(), row_len);
        self.answer(verdict.map(|verdict| (verdict, figures)));
        Progress::Done
    }

    fn is_cancelled(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn fail(mut self: Box<Self>, error: EngineError) {
        self.answer(Err(error.into()));
    }
}

/// The target laws along a chain, made in place from the rows of a forward, one after the other.
pub(crate) struct Laws<'a> {
    pipeline: Pipeline,
    history: History,
    base_len: u32,
    drafts: &'a [TokenId],
    vocab_size: usize,
    rows: std::slice::ChunksExactMut<'a, f32>,
}

impl<'a> Laws<'a> {
    /// The laws after `output` and each prefix of `drafts`, from `logits` (drafts + 1, `row_len`).
    pub(crate) fn new(
        spec: &SessionSpec,
        output: &[TokenId],
        drafts: &'a [TokenId],
        logits: &'a mut [f32],
        row_len: usize,
    ) -> Self {
        Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: History::new(&spec.sampling, &spec.prompt, output),
            base_len: output.len() as u32,
            drafts,
            vocab_size: spec.vocab_size as usize,
            rows: logits.chunks_exact_mut(row_len),
        }
    }

    /// The logits of the position `offset` after the base, after bans, bias and penalties are due.
    /// Positions must be asked for in order.
    fn row(&mut self, offset: usize) -> Option<&'a mut [f32]> {
        if let Some(&draft) = offset
            .checked_sub(1)
            .and_then(|before| self.drafts.get(before))
        {
            self.history.push(draft);
        }
        self.rows.next().map(|row| &mut row[..self.vocab_size])
    }

    /// The law of the position `offset` after the base. Positions must be asked for in order, each
    /// once.
    pub(crate) fn next(&mut self, offset: usize) -> Result<&'a [f32], LawError> {
        let row = self.row(offset).ok_or(LawError::NoRow)?;
        self.pipeline
            .law(row, &self.history, self.base_len + offset as u32)?;
        Ok(row)
    }

    /// Like [`Laws::next`], with the unscaled law beside it.
    pub(crate) fn next_with_unscaled(
        &mut self,
        offset: usize,
    ) -> Result<(&'a [f32], Vec<f32>), LawError> {
        let row = self.row(offset).ok_or(LawError::NoRow)?;
        let position = self.base_len + offset as u32;
        let unscaled = self.pipeline.unscaled(row, &self.history, position)?;
        self.pipeline.law(row, &self.history, position)?;
        Ok((row, unscaled))
    }
}
