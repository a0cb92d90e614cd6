//! Scoring one draft block without deciding it: the coordinator decides, from slices of the law.

use std::sync::Arc;
use std::time::Duration;

use model::engine::{EngineError, Progress, StepRows, Task};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::pipeline::Want;
use speculation::round::TargetRows;
use tokio::sync::oneshot;
use wire::open::SessionSpec;
use wire::{slice, v1};

use crate::cost::Cost;
use crate::error::RoundError;
use crate::rows::LogitRows;
use crate::session::Session;

/// What a task answers: one slice a position, headers still to be set.
pub(crate) type Scored = Result<(Vec<v1::Slice>, Cost), RoundError>;

/// Scores a block.
pub(crate) struct ScoreTask {
    spec: Arc<SessionSpec>,
    /// Prompt (or start token), output and drafts.
    tokens: Vec<TokenId>,
    base_len: usize,
    wanted: v1::SliceRequest,
    progress: Reporter,
    answer: Option<oneshot::Sender<Scored>>,
}

impl ScoreTask {
    /// A task that scores `drafts` on top of the session's output, with the channel it answers on.
    pub(crate) fn new(
        session: &Session,
        drafts: &[TokenId],
        wanted: v1::SliceRequest,
        progress: Reporter,
    ) -> (Self, oneshot::Receiver<Scored>) {
        let (answer, receiver) = oneshot::channel();
        let task = Self {
            spec: Arc::clone(&session.spec),
            tokens: session.sequence(drafts),
            base_len: session.committed.tokens().len(),
            wanted,
            progress,
            answer: Some(answer),
        };
        (task, receiver)
    }

    fn score(&self, logits: &mut [f32], row_len: usize) -> Result<Vec<v1::Slice>, RoundError> {
        let drafts = self.tokens.len() - self.spec.lead().len() - self.base_len;
        let want = Want {
            max: self.wanted.confidences,
            entropy: self.wanted.confidences,
            unscaled: self.wanted.unscaled,
        };
        let mut unscaled = Vec::new();
        let logits = (logits, row_len);
        let mut rows = LogitRows::new(
            &self.spec,
            &self.tokens,
            self.base_len,
            want,
            logits,
            &mut unscaled,
        );
        (0..=drafts)
            .map(|offset| {
                let laws = rows.laws(offset)?;
                let unscaled = laws.unscaled.filter(|_| self.wanted.unscaled);
                let top = self.wanted.top;
                let mut slice = slice::to_wire(offset, laws.law, unscaled, laws.confidence, top);
                slice.last = offset == drafts;
                Ok(slice)
            })
            .collect()
    }

    fn answer(&mut self, scored: Scored) {
        if let Some(answer) = self.answer.take() {
            // The receiver is gone if nobody waits any more.
            let _ = answer.send(scored);
        }
    }
}

impl Task for ScoreTask {
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
        // Nothing is decided here.
        let accept = Duration::ZERO;
        let slices = self.score(rows.logits_mut(), row_len);
        self.answer(slices.map(|slices| (slices, Cost { step, accept })));
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
