//! A task in the batch.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use speculation::{
    ports::{KvCache, ModelShape, Segment},
    tree_paths::TreePaths,
};

use super::{
    handle::Queued,
    task::{EngineError, Progress, SlotId, StepFigures, StepRows, Task},
};
use crate::sequence::Sequence;

/// A task, with the sequence of its slot.
pub(super) struct Running<C> {
    pub(super) slot: SlotId,
    pub(super) task: Box<dyn Task>,
    pub(super) sequence: Sequence<C>,
    pub(super) done: bool,
    plan: Plan,
    /// The tree that the task's tokens end in.
    tree: TreePaths,
    /// When the task was submitted; `None` from its first forward on.
    submitted: Option<Instant>,
    figures: StepFigures,
}

/// What the next forward does for a task.
#[derive(Clone, Default)]
struct Plan {
    /// Positions to be forwarded.
    positions: Range<usize>,
    /// First of them whose row is wanted; the end of the range in a chunk of a prefill.
    scored_from: usize,
}

/// A forward that has been made, as all its tasks see it.
#[derive(Clone, Copy)]
pub(super) struct Forward {
    pub(super) started: Instant,
    pub(super) elapsed: Duration,
    pub(super) tokens: usize,
    pub(super) sequences: usize,
}

impl<C: KvCache> Running<C> {
    pub(super) fn new(queued: Queued, sequence: Sequence<C>) -> Self {
        Self {
            slot: queued.slot,
            task: queued.task,
            sequence,
            done: false,
            plan: Plan::default(),
            tree: TreePaths::default(),
            submitted: Some(queued.since),
            figures: StepFigures::default(),
        }
    }

    /// Reconciles the sequence with what the task wants, and decides what the next forward does for
    /// it: at most `chunk` positions ahead of the scored ones and of the tree, which come all at once.
    pub(super) fn plan(&mut self, shape: ModelShape, chunk: usize) -> Result<(), EngineError> {
        let tokens = self.task.tokens();
        let scored_from = self.task.scored_from();
        let (vocab_size, context_len) = (shape.vocab_size, shape.context_len);
        if scored_from >= tokens.len() {
            return Err(EngineError::NothingScored {
                scored_from,
                tokens: tokens.len(),
            });
        }
        self.tree.read(self.task.parents(), tokens.len())?;
        let trunk = tokens.len() - self.tree.len();
        if trunk + self.tree.depth() > context_len {
            return Err(EngineError::ContextExceeded {
                tokens: trunk + self.tree.depth(),
                context_len,
            });
        }
        // From here on all is forwarded, and at once.
        let whole_from = scored_from.min(trunk);
        let kept = self.sequence.reconcile(tokens, whole_from);
        let mut missing = tokens[kept..].iter();
        if let Some(&token) = missing.find(|token| **token as usize >= vocab_size) {
            return Err(EngineError::TokenOutOfRange { token, vocab_size });
        }
        self.plan = if whole_from - kept > chunk {
            Plan {
                positions: kept..kept + chunk,
                scored_from: kept + chunk,
            }
        } else {
            Plan {
                positions: kept..tokens.len(),
                scored_from,
            }
        };
        Ok(())
    }

    /// This task's share of the next forward.
    pub(super) fn segment(&mut self) -> Segment<'_, C> {
        let tokens = self.task.tokens();
        let is_chunk = self.plan.positions.end < tokens.len();
        Segment {
            cache: self.sequence.cache_mut(),
            tokens: &tokens[self.plan.positions.clone()],
            parents: if is_chunk { &[] } else { self.task.parents() },
            scored_from: self.plan.scored_from - self.plan.positions.start,
        }
    }

    /// Number of rows the planned forward gives this task.
    pub(super) fn rows(&self) -> usize {
        self.plan.positions.end - self.plan.scored_from
    }

    /// Records the planned forward.
    pub(super) fn forwarded(&mut self, forward: Forward) {
        let tokens = &self.task.tokens()[self.plan.positions.clone()];
        self.sequence.extend(tokens);
        if let Some(submitted) = self.submitted.take() {
            self.figures.queue = forward.started.duration_since(submitted);
        }
        self.figures.forward += forward.elapsed;
        self.figures.forwarded_tokens += tokens.len();
        self.figures.batch_tokens = forward.tokens;
        self.figures.batch_sequences = forward.sequences;
    }

    /// Hands the task its rows: `logits` is `(rows, vocab_size)`, `hidden` `(rows, hidden_size)` or
    /// empty.
    pub(super) fn step(&mut self, logits: &mut [f32], hidden: &[f32], shape: ModelShape) {
        let figures = std::mem::take(&mut self.figures);
        let rows = StepRows::new(logits, shape.vocab_size, hidden, shape.hidden_size, figures);
        self.done = self.task.step(rows) == Progress::Done;
        if !self.tree.is_empty() {
            self.keep();
        }
    }

    /// Makes a sequence again of one that ends in a tree.
    fn keep(&mut self) {
        let trunk = self.plan.positions.end - self.tree.len();
        let mut path = self.task.kept();
        if !path.is_empty() && !self.tree.holds(path) {
            tracing::warn!(?path, "the task keeps what is no path of its tree");
            path = &[];
        }
        self.sequence.keep(trunk, path);
    }
}
