//! Decoding alone on the engine thread: one token a forward.

use std::sync::Arc;
use std::time::Instant;

use model::engine::{EngineError, Progress, StepRows, Task};
use peer::{Cost, CountedHistory, Granted, HeldSession, Role, RoundError};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::logprobs::TokenLogprobs;
use speculation::pipeline::{DistributionError, Pipeline};
use tokio::sync::mpsc;
use wire::open::SessionSpec;

use crate::logprobs;

/// What a task reports while it decodes.
pub(crate) type Report = Result<DecodedToken, RoundError>;

/// A token decoded alone.
pub(crate) struct DecodedToken {
    pub(crate) token: TokenId,
    /// Its log probabilities, if the session wants them.
    pub(crate) logprobs: Option<TokenLogprobs>,
    pub(crate) cost: Cost,
}

/// Decodes with the target alone. It draws coupled noise, whatever the verification, so that its
/// tokens are those of coupled verification.
pub(crate) struct DecodeTask {
    spec: Arc<SessionSpec>,
    pipeline: Pipeline,
    history: CountedHistory,
    /// Prompt and output.
    tokens: Vec<TokenId>,
    left: u32,
    granted: Granted,
    progress: Reporter,
    /// Scratch of log probabilities.
    order: Vec<TokenId>,
    logits: Vec<f32>,
    /// Has room for all tokens, so that sending never waits.
    reports: mpsc::Sender<Report>,
}

impl DecodeTask {
    /// A task that decodes at most `max_tokens` tokens after the session's output and `decoded`, as far as it is
    /// granted, with the channel on which it reports them; the channel closes at the end.
    pub(crate) fn new(
        session: &HeldSession<impl Role>,
        decoded: &[TokenId],
        max_tokens: u32,
        granted: Granted,
        progress: Reporter,
    ) -> (Self, mpsc::Receiver<Report>) {
        let (reports, receiver) = mpsc::channel(max_tokens as usize + 1);
        let spec = Arc::clone(&session.spec);
        let mut history = session.history();
        for &token in decoded {
            history.push(token);
        }
        let task = Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history,
            tokens: session.sequence(decoded),
            left: max_tokens,
            granted,
            spec,
            progress,
            order: Vec::new(),
            logits: Vec::new(),
            reports,
        };
        (task, receiver)
    }

    /// The position of the next token.
    fn position(&self) -> u32 {
        (self.tokens.len() - self.spec.lead().len()) as u32
    }

    /// Chooses a token from the logits `row`, which become probabilities.
    fn choose(
        &mut self,
        row: &mut [f32],
    ) -> Result<(TokenId, Option<TokenLogprobs>), DistributionError> {
        let probs = &mut row[..self.spec.vocab_size as usize];
        let position = self.position();
        if self.spec.logprobs.is_some() {
            self.logits.clear();
            self.logits.extend_from_slice(probs);
        }
        self.pipeline.probs(probs, &self.history, position)?;
        let token = choice(probs, &self.spec.noise, position);
        let top = self.spec.logprobs;
        let logprobs = top.map(|top| logprobs::of(&self.logits, token, top, &mut self.order));
        Ok((token, logprobs.transpose()?))
    }

    fn report(&self, report: Report) {
        // The receiver is gone if nobody waits any more; the task is then cancelled.
        let _ = self.reports.try_send(report);
    }
}

impl Task for DecodeTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> Progress {
        let step = rows.timing();
        self.progress.count(step.forwarded_tokens);
        let began = Instant::now();
        let chosen = self.choose(rows.row_mut(0));
        let accept = began.elapsed();
        let (token, logprobs) = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                self.report(Err(error.into()));
                return Progress::Done;
            }
        };
        self.tokens.push(token);
        self.history.push(token);
        self.left -= 1;
        self.report(Ok(DecodedToken {
            token,
            logprobs,
            cost: Cost { step, accept },
        }));
        let ended = self.spec.sampling.end_tokens.contains(&token);
        if ended || self.left == 0 || self.position() >= self.granted.until() {
            Progress::Done
        } else {
            Progress::Continue
        }
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        self.progress.part(done, total);
    }

    fn is_cancelled(&self) -> bool {
        self.reports.is_closed()
    }

    fn fail(self: Box<Self>, error: EngineError) {
        self.report(Err(error.into()));
    }
}
