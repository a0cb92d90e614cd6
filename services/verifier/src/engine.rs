//! The engine of this process as what computes the target: our runtime or llama.cpp, behind one engine thread.
//!
//! A block of drafts, or a part of the prompt, is scored in one forward, whose rows a [`RowConsumer`] turns into a result.

mod decode;
mod logprobs;
mod tree;
mod verify;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::engine::{StepRows, Task, TaskError, TaskProgress};
use peer::progress::Reporter;
use peer::{Cost, CountedHistory, RoundError};
use speculation::TokenId;
use speculation::certificate::Decided;
use speculation::history::History;
use speculation::logprobs::TokenLogprobs;
use speculation::round::BlockInput;
use tokio::sync::oneshot;
use wire::open::SessionSpec;
use wire::v1;

use crate::scorer::{DecodeRun, Scorer, VerifySession};
use decode::DecodeTask;
use logprobs::PromptScores;

/// The engine of this process. The session's slot holds its keys and values.
pub(crate) struct EngineScorer;

#[tonic::async_trait]
impl Scorer for EngineScorer {
    async fn decide(
        &self,
        session: &mut VerifySession,
        block: BlockInput,
        progress: Reporter,
        _limit: Duration,
    ) -> Result<(Decided, Cost), RoundError> {
        let (tokens, from) = after_output(session, block.drafts.tokens());
        score(session, tokens, from, block, progress).await
    }

    async fn slices(
        &self,
        session: &VerifySession,
        drafts: &[TokenId],
        request: v1::SliceRequest,
        progress: Reporter,
    ) -> Result<(Vec<v1::Slice>, Cost), RoundError> {
        let (tokens, from) = after_output(session, drafts);
        score(session, tokens, from, request, progress).await
    }

    async fn decode(
        self: Arc<Self>,
        session: &mut VerifySession,
        run: DecodeRun,
        _limit: Duration,
    ) -> Result<(), RoundError> {
        let history = run.history(session);
        Ok(session.submit(DecodeTask::new(run, history))?)
    }

    async fn score_prompt(
        &self,
        session: &VerifySession,
        range: Range<usize>,
        progress: Reporter,
        _limit: Duration,
    ) -> Result<(Vec<TokenLogprobs>, Cost), RoundError> {
        let tokens = session.spec.lead()[..range.end].to_vec();
        score(session, tokens, range.start, PromptScores, progress).await
    }
}

/// Turns the rows of one forward into a result.
trait RowConsumer: Send + 'static {
    /// The result.
    type Output: Send;

    /// Takes the logits `rows`, (scored tokens, their length): after each token from [`Task::scored_from`] on.
    fn evaluate(
        &mut self,
        input: &mut ScoringInput,
        rows: (&mut [f32], usize),
    ) -> Result<Self::Output, RoundError>;

    /// See [`Task::parents`].
    fn parents(&self) -> &[Option<u32>] {
        &[]
    }
}

/// The tokens of a forward, and what their session says of them.
struct ScoringInput {
    spec: Arc<SessionSpec>,
    /// Prompt (or start token), output and drafts.
    tokens: Vec<TokenId>,
    /// Number of output tokens before the drafts.
    base_len: usize,
    /// See [`Task::scored_from`].
    scored_from: usize,
    /// After the output.
    history: CountedHistory,
}

impl ScoringInput {
    /// Returns the drafts, and what was seen before them.
    fn drafts(&mut self) -> (&[TokenId], &mut History) {
        let first = self.spec.lead().len() + self.base_len;
        (&self.tokens[first..], &mut self.history)
    }
}

/// Returns the tokens of `drafts` on top of the session's output, and the first whose row is wanted.
fn after_output(session: &VerifySession, drafts: &[TokenId]) -> (Vec<TokenId>, usize) {
    let tokens = session.sequence(drafts);
    let scored_from = tokens.len() - drafts.len() - 1;
    (tokens, scored_from)
}

/// Forwards `tokens`, those of `session` and what follows them, and has `consumer` evaluate the rows from `scored_from`
/// on. Returns its result, and the cost.
///
/// # Errors
/// If the engine takes no more tasks or fails, or as the consumer.
async fn score<C: RowConsumer>(
    session: &VerifySession,
    tokens: Vec<TokenId>,
    scored_from: usize,
    consumer: C,
    progress: Reporter,
) -> ScoringResult<C> {
    let (sender, receiver) = oneshot::channel();
    let input = ScoringInput {
        spec: Arc::clone(&session.spec),
        tokens,
        base_len: session.committed.tokens().len(),
        scored_from,
        history: session.history(),
    };
    session.submit(ScoringTask {
        input,
        consumer,
        progress,
        result: Some(sender),
    })?;
    receiver.await.map_err(|_| RoundError::Dropped)?
}

/// What was made of the rows, and what they cost.
type ScoringResult<C> = Result<(<C as RowConsumer>::Output, Cost), RoundError>;

struct ScoringTask<C: RowConsumer> {
    input: ScoringInput,
    consumer: C,
    progress: Reporter,
    result: Option<oneshot::Sender<ScoringResult<C>>>,
}

impl<C: RowConsumer> ScoringTask<C> {
    fn finish(&mut self, result: ScoringResult<C>) {
        if let Some(waiting) = self.result.take() {
            // The receiver is gone if nobody waits any more.
            let _ = waiting.send(result);
        }
    }
}

impl<C: RowConsumer> Task for ScoringTask<C> {
    fn tokens(&self) -> &[TokenId] {
        &self.input.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.input.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.input.scored_from
    }

    fn parents(&self) -> &[Option<u32>] {
        self.consumer.parents()
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        let (step, row_len) = (rows.timing, rows.vocab_size);
        let began = Instant::now();
        let rows = (rows.logits, row_len);
        let evaluated = self.consumer.evaluate(&mut self.input, rows);
        let accept = began.elapsed();
        self.finish(evaluated.map(|output| (output, Cost { step, accept })));
        TaskProgress::Done
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        self.progress.part(done, total);
    }

    fn is_cancelled(&self) -> bool {
        self.result.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn fail(mut self: Box<Self>, error: TaskError) {
        self.finish(Err(error.into()));
    }
}
