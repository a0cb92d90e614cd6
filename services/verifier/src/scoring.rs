//! Scoring a block of drafts, or a part of the prompt, on the engine thread: one forward, whose rows a [`Judge`] turns
//! into an answer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use model::engine::{EngineError, Progress, StepRows, Task};
use peer::{Cost, CountedHistory, HeldSession, Role, RoundError};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::history::History;
use tokio::sync::oneshot;
use wire::open::SessionSpec;

/// What is made of the rows of a block.
pub(crate) trait Judge: Send + 'static {
    /// What comes of it.
    type Verdict: Send;

    /// Takes the logits `rows`, (drafts + 1, their length): after the output, then after each draft token.
    fn judge(
        &mut self,
        block: &mut Block,
        rows: (&mut [f32], usize),
    ) -> Result<Self::Verdict, RoundError>;

    /// See [`Task::parents`].
    fn parents(&self) -> &[Option<u32>] {
        &[]
    }

    /// See [`Task::kept`]; asked once the block is judged.
    fn kept(&self) -> &[u32] {
        &[]
    }
}

/// A block of drafts on top of a session's output.
pub(crate) struct Block {
    pub(crate) spec: Arc<SessionSpec>,
    /// Prompt (or start token), output and drafts.
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) base_len: usize,
    /// See [`Task::scored_from`].
    scored_from: usize,
    /// After the output.
    pub(crate) history: CountedHistory,
}

impl Block {
    /// The drafts, and what was seen before them.
    pub(crate) fn drafts(&mut self) -> (&[TokenId], &mut History) {
        let first = self.spec.lead().len() + self.base_len;
        (&self.tokens[first..], &mut self.history)
    }
}

/// Scores `drafts` on top of the session's output; what `judge` makes of them, and what it cost. How far it is
/// goes to `progress`.
pub(crate) async fn score<J: Judge>(
    session: &HeldSession<impl Role>,
    drafts: &[TokenId],
    judge: J,
    progress: Reporter,
) -> Judged<J> {
    let base_len = session.committed.tokens().len();
    let block = Block {
        spec: Arc::clone(&session.spec),
        tokens: session.sequence(drafts),
        base_len,
        scored_from: session.spec.lead().len() + base_len - 1,
        history: session.history(),
    };
    run(session, block, judge, progress).await
}

/// Scores the tokens `range` of the prompt, before any output. Returns what `judge` computes from the rows of these
/// tokens, and the cost.
pub(crate) async fn score_prompt<J: Judge>(
    session: &HeldSession<impl Role>,
    range: Range<usize>,
    judge: J,
    progress: Reporter,
) -> Judged<J> {
    let block = Block {
        spec: Arc::clone(&session.spec),
        tokens: session.spec.lead()[..range.end].to_vec(),
        base_len: 0,
        scored_from: range.start,
        history: session.history(),
    };
    run(session, block, judge, progress).await
}

async fn run<J: Judge>(
    session: &HeldSession<impl Role>,
    block: Block,
    judge: J,
    progress: Reporter,
) -> Judged<J> {
    let (answer, answered) = oneshot::channel();
    session.submit(ScoringTask {
        block,
        judge,
        progress,
        answer: Some(answer),
    })?;
    answered.await.map_err(|_| RoundError::Dropped)?
}

/// What a task answers: what was judged, and what it cost.
type Judged<J> = Result<(<J as Judge>::Verdict, Cost), RoundError>;

struct ScoringTask<J: Judge> {
    block: Block,
    judge: J,
    progress: Reporter,
    answer: Option<oneshot::Sender<Judged<J>>>,
}

impl<J: Judge> ScoringTask<J> {
    fn answer(&mut self, answer: Judged<J>) {
        if let Some(waiting) = self.answer.take() {
            // The receiver is gone if nobody waits any more.
            let _ = waiting.send(answer);
        }
    }
}

impl<J: Judge> Task for ScoringTask<J> {
    fn tokens(&self) -> &[TokenId] {
        &self.block.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.block.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.block.scored_from
    }

    fn parents(&self) -> &[Option<u32>] {
        self.judge.parents()
    }

    fn kept(&self) -> &[u32] {
        self.judge.kept()
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> Progress {
        let (step, row_len) = (rows.timing(), rows.vocab_size());
        let began = Instant::now();
        let judged = self
            .judge
            .judge(&mut self.block, (rows.logits_mut(), row_len));
        let accept = began.elapsed();
        self.answer(judged.map(|verdict| (verdict, Cost { step, accept })));
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
