//! Deciding one draft block on the engine thread: one forward.

use std::cell::RefCell;
use std::sync::Arc;

use model::engine::{EngineError, Progress, StepRows, Task};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::pipeline::Want;
use speculation::proposal::Proposal;
use speculation::round::{self, RoundInputs, Scratch};
use speculation::verification::layers::Layer;
use speculation::verification::{Block, Verdict, Verification};
use tokio::sync::oneshot;
use wire::open::SessionSpec;

use crate::cost::{Cost, timed};
use crate::error::RoundError;
use crate::rows::LogitRows;
use crate::session::Session;

thread_local! {
    /// Rows of the engine's thread that every round writes to.
    static SCRATCH: RefCell<(Scratch<f32>, Vec<f32>)> = RefCell::default();
}

/// What a task answers.
pub(crate) type Decision = Result<(Verdict, Cost), RoundError>;

/// What is to be decided.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) drafts: Vec<TokenId>,
    /// What was told of the draft model, at each draft token.
    pub(crate) proposals: Vec<Proposal>,
    /// The same at the position after them.
    pub(crate) bonus: Option<Proposal>,
    pub(crate) horizon: u32,
    pub(crate) layers: Vec<Layer>,
}

/// Scores a block and decides it.
pub(crate) struct VerifyTask {
    spec: Arc<SessionSpec>,
    /// Prompt (or start token), output and drafts.
    tokens: Vec<TokenId>,
    base_len: usize,
    asked: Asked,
    progress: Reporter,
    answer: Option<oneshot::Sender<Decision>>,
}

impl VerifyTask {
    /// A task that decides what is asked on top of the session's output, with the channel it answers
    /// on.
    pub(crate) fn new(
        session: &Session,
        asked: Asked,
        progress: Reporter,
    ) -> (Self, oneshot::Receiver<Decision>) {
        let (answer, receiver) = oneshot::channel();
        let task = Self {
            spec: Arc::clone(&session.spec),
            tokens: session.sequence(&asked.drafts),
            base_len: session.committed.tokens().len(),
            asked,
            progress,
            answer: Some(answer),
        };
        (task, receiver)
    }

    fn decide(&self, logits: &mut [f32], row_len: usize) -> Result<Verdict, RoundError> {
        let (spec, asked) = (&self.spec, &self.asked);
        let greedy = spec.sampling.temperature == 0.0;
        let mut want = Want::of_target(spec.target.needs(greedy));
        want.unscaled |= matches!(spec.verification, Verification::Bild { .. });
        let inputs = RoundInputs {
            target: &spec.target,
            verification: spec.verification,
            greedy,
            drafts: &asked.drafts,
            proposals: &asked.proposals,
            bonus: asked.bonus.as_ref(),
            vocab_size: spec.vocab_size as usize,
        };
        let block = Block {
            drafts: &asked.drafts,
            base_len: self.base_len as u32,
            ends: &spec.sampling.end_tokens,
            horizon: asked.horizon,
            layers: &asked.layers,
        };
        SCRATCH.with_borrow_mut(|(scratch, unscaled)| {
            let (tokens, rows) = (&self.tokens, (logits, row_len));
            let rows = LogitRows::new(spec, tokens, self.base_len, want, rows, unscaled);
            round::decide(inputs, &block, spec.noise, rows, scratch)
        })
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

    fn source(&self) -> &[TokenId] {
        self.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.spec.lead().len() + self.base_len - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> Progress {
        let step = rows.figures();
        let row_len = rows.vocab_size();
        let (decided, accept) = timed(|| self.decide(rows.logits_mut(), row_len));
        self.answer(decided.map(|verdict| (verdict, Cost { step, accept })));
        Progress::Done
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        self.progress.part(done, total);
    }

    fn is_cancelled(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn fail(mut self: Box<Self>, error: EngineError) {
        self.answer(Err(error.into()));
    }
}
