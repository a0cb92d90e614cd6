//! Deciding one draft tree on the engine thread: one forward, coupled verification of the target model's
//! own distribution.

use std::sync::Arc;

use model::engine::{EngineError, Progress, StepRows, Task};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use speculation::history::History;
use speculation::pipeline::Pipeline;
use speculation::verification::tree::{self, NodeLaws};
use speculation::verification::{Verdict, Verification};
use tokio::sync::oneshot;
use wire::open::SessionSpec;
use wire::status::BadField;

use crate::cost::{Cost, timed};
use crate::error::RoundError;
use crate::session::Session;

/// What a task answers.
pub(crate) type Decision = Result<(Verdict, Cost), RoundError>;

/// Checks that a session's rounds may be trees.
///
/// # Errors
/// Names what they do not go with.
pub(crate) fn check(spec: &SessionSpec) -> Result<(), BadField> {
    let refused = |problem: &str| Err(BadField::new("drafts.parents", problem));
    if spec.verification != Verification::Coupled || !spec.target.is_exact() {
        return refused("a tree goes with verification COUPLED and the exact target only");
    }
    if spec.accept_at_coordinator {
        return refused("a tree is decided at the verifier only, set accept_at to it");
    }
    Ok(())
}

/// Scores a tree and decides it.
pub(crate) struct TreeTask {
    spec: Arc<SessionSpec>,
    /// Prompt (or start token), output and nodes.
    tokens: Vec<TokenId>,
    base_len: usize,
    drafts: DraftTree,
    /// The nodes accepted, once that is decided.
    path: Vec<u32>,
    progress: Reporter,
    answer: Option<oneshot::Sender<Decision>>,
}

impl TreeTask {
    /// A task that decides `drafts` on top of the session's output, with the channel it answers on.
    pub(crate) fn new(
        session: &Session,
        drafts: DraftTree,
        progress: Reporter,
    ) -> (Self, oneshot::Receiver<Decision>) {
        let (answer, receiver) = oneshot::channel();
        let task = Self {
            spec: Arc::clone(&session.spec),
            tokens: session.sequence(drafts.tokens()),
            base_len: session.committed.tokens().len(),
            drafts,
            path: Vec::new(),
            progress,
            answer: Some(answer),
        };
        (task, receiver)
    }

    fn decide(&mut self, logits: &mut [f32], row_len: usize) -> Result<Verdict, RoundError> {
        let spec = &self.spec;
        let output = &self.tokens[spec.lead().len()..][..self.base_len];
        let mut laws = PathLaws {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: History::new(&spec.sampling, &spec.prompt, output),
            position: self.base_len as u32,
            drafts: &self.drafts,
            rows: logits,
            row_len,
            vocab_size: spec.vocab_size as usize,
        };
        let (base_len, ends) = (self.base_len as u32, &spec.sampling.end_tokens);
        let decided = tree::verify(&self.drafts, base_len, ends, &spec.noise, &mut laws)?;
        self.path.clone_from(&decided.path);
        Ok(decided)
    }

    fn answer(&mut self, decision: Decision) {
        if let Some(answer) = self.answer.take() {
            // The receiver is gone if nobody waits any more.
            let _ = answer.send(decision);
        }
    }
}

impl Task for TreeTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.spec.lead().len() + self.base_len - 1
    }

    fn parents(&self) -> &[Option<u32>] {
        self.drafts.parents()
    }

    fn kept(&self) -> &[u32] {
        &self.path
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

/// The laws along the path that is walked, made from the rows of one forward as they are asked for.
struct PathLaws<'a> {
    pipeline: Pipeline,
    /// Of the path so far: penalties count the ancestors of a node, not its siblings.
    history: History,
    position: u32,
    drafts: &'a DraftTree,
    /// Logits (nodes + 1, `row_len`): after the output, then after each node.
    rows: &'a mut [f32],
    row_len: usize,
    vocab_size: usize,
}

impl NodeLaws<f32> for PathLaws<'_> {
    type Error = RoundError;

    fn after(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        let row = node.map_or(0, |node| node + 1);
        if let Some(node) = node {
            self.history.push(self.drafts.tokens()[node]);
            self.position += 1;
        }
        let law = &mut self.rows[row * self.row_len..][..self.vocab_size];
        self.pipeline.law(law, &self.history, self.position)?;
        Ok(law)
    }
}
