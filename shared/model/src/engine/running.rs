//! A task in the batch.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use speculation::{
    TokenId,
    ports::{Caps, KvCache, LanguageModel, ModelShape, Segment},
    tree_paths::TreePaths,
};

use super::{
    handle::Queued,
    task::{SlotId, StepRows, StepTiming, Task, TaskError, TaskProgress},
};
use crate::{
    forward_error::{ForwardError, check_len, check_source, check_tokens},
    sequence::CachedSequence,
};

/// A task, with the sequence of its slot.
pub(super) struct RunningTask<C> {
    pub(super) slot: SlotId,
    pub(super) tenant: Option<Arc<str>>,
    pub(super) task: Box<dyn Task>,
    pub(super) sequence: CachedSequence<C>,
    pub(super) done: bool,
    /// Whether it may be forwarded next.
    pub(super) turn: Turn,
    /// Forwards since the last it had a share of.
    pub(super) waited: u32,
    /// From this token on all is forwarded, and at once: the scored ones and the tree, as far as it is not held.
    whole_from: usize,
    /// Whether the source must be encoded before anything is forwarded.
    encodes: bool,
    plan: ForwardPlan,
    /// The tree that the task's tokens end in.
    tree: TreePaths,
    /// When the task was submitted; `None` from its first forward on.
    submitted: Option<Instant>,
    timing: StepTiming,
}

/// Whether a task may be forwarded next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// The memory has no room for what it asks for, or none yet.
    #[default]
    Waits,
    /// An older task reads what it begins with, too.
    Follows,
    /// It has room.
    HasRoom,
}

/// What the next forward does for a task.
#[derive(Clone, Default)]
struct ForwardPlan {
    /// Positions to be forwarded.
    positions: Range<usize>,
    /// First of them whose row is wanted; the end of the range in a chunk of a prefill.
    scored_from: usize,
}

impl ForwardPlan {
    /// The tree that the sequence of `task` ends in after the forward: none after a chunk of a prefill.
    fn parents<'a>(&self, task: &'a dyn Task) -> &'a [Option<u32>] {
        let is_chunk = self.positions.end < task.tokens().len();
        if is_chunk { &[] } else { task.parents() }
    }
}

/// A forward that has been made, as all its tasks see it.
#[derive(Clone, Copy)]
pub(super) struct Forward {
    pub(super) started: Instant,
    pub(super) elapsed: Duration,
    pub(super) tokens: usize,
    pub(super) sequences: usize,
    pub(super) row: Duration,
    pub(super) price: f32,
}

impl<C: KvCache> RunningTask<C> {
    pub(super) fn new(queued: Queued, sequence: CachedSequence<C>) -> Self {
        Self {
            slot: queued.slot,
            tenant: queued.tenant,
            task: queued.task,
            sequence,
            done: false,
            turn: Turn::default(),
            waited: 0,
            whole_from: 0,
            encodes: false,
            plan: ForwardPlan::default(),
            tree: TreePaths::default(),
            submitted: Some(queued.since),
            timing: StepTiming::default(),
        }
    }

    /// Reconciles the sequence with what the task wants, and checks that.
    pub(super) fn reconcile(&mut self, shape: ModelShape, caps: Caps) -> Result<(), TaskError> {
        let tokens = self.task.tokens();
        let scored_from = self.task.scored_from();
        if scored_from >= tokens.len() {
            return Err(TaskError::NothingScored {
                scored_from,
                tokens: tokens.len(),
            });
        }
        let parents = self.task.parents();
        (self.tree)
            .read(parents, tokens.len())
            .map_err(ForwardError::from)?;
        let trunk = tokens.len() - self.tree.len();
        check_len(trunk + self.tree.depth(), shape.context_len)?;
        let source = self.task.source();
        check_source(source, shape)?;
        if source.is_empty() && shape.source_len > 0 {
            return Err(ForwardError::NoSource.into());
        }
        self.encodes = source != self.sequence.source();
        // Whatever the sequence holds was written from another source.
        let limit = if self.encodes { 0 } else { scored_from };
        let kept = (self.sequence).reconcile(tokens, parents, limit, caps.growing_trees);
        // A tree of which nothing is held is forwarded whole.
        self.whole_from = if kept > trunk {
            kept
        } else {
            scored_from.min(trunk)
        };
        Ok(check_tokens(&tokens[kept..], shape.vocab_size)?)
    }

    /// Tokens before any tree that it does not want rows of: what others may have computed.
    pub(super) fn beginning(&self) -> &[TokenId] {
        let tokens = self.task.tokens();
        let trunk = tokens.len().saturating_sub(self.task.parents().len());
        &tokens[..self.task.scored_from().min(trunk)]
    }

    /// Goes on with `cache`, which holds the first of the task's tokens. Returns how many tokens need not be forwarded for that.
    pub(super) fn take_over(&mut self, cache: C) -> usize {
        let (held, lost) = (cache.len(), self.sequence.lost());
        let tokens = held - self.sequence.tokens().len();
        self.sequence = CachedSequence::new(cache, &self.task.tokens()[..held], lost);
        self.timing.reused_tokens += tokens;
        tokens
    }

    /// Whether the task has had no forward yet.
    pub(super) fn is_new(&self) -> bool {
        self.submitted.is_some()
    }

    /// Tokens of the source that must be encoded before anything is forwarded.
    pub(super) fn unread(&self) -> usize {
        if self.encodes {
            self.task.source().len()
        } else {
            0
        }
    }

    /// Has `model` read the source, if the sequence was written from another.
    pub(super) fn encode<M>(&mut self, model: &mut M) -> Result<(), M::Error>
    where
        M: LanguageModel<Cache = C>,
    {
        if self.encodes {
            let source = self.task.source();
            model.encode(self.sequence.cache_mut(), source)?;
            self.encodes = false;
            self.sequence.encoded(source);
            self.timing.forwarded_tokens += source.len();
        }
        Ok(())
    }

    /// Tokens that must be forwarded before the scored ones and the tree.
    pub(super) fn missing(&self) -> usize {
        self.whole_from - self.sequence.tokens().len()
    }

    /// Tokens that are forwarded at once after them. Before the task is reconciled anew, it may want less than it did.
    pub(super) fn block(&self) -> usize {
        self.task.tokens().len().saturating_sub(self.whole_from)
    }

    /// Pages that all this takes beyond those held.
    pub(super) fn pages_needed(&self, chunk: usize) -> usize {
        let more = self.missing() + self.block();
        let at_once = chunk + self.block();
        self.sequence.cache().pages_for(more, at_once)
    }

    /// Leaves the task out of the next forward.
    pub(super) fn wait(&mut self) {
        self.plan = ForwardPlan::default();
        self.waited += 1;
    }

    /// Forwards everything next.
    pub(super) fn forward_all(&mut self) {
        self.waited = 0;
        self.plan = ForwardPlan {
            positions: self.sequence.tokens().len()..self.task.tokens().len(),
            scored_from: self.task.scored_from(),
        };
    }

    /// Whether the next forward gives the task all its rows, and it takes drafts beside them.
    pub(super) fn may_draft(&self) -> bool {
        self.rows() > 0 && self.tree.is_empty() && self.task.takes_drafts()
    }

    /// Tokens that its sequence holds after the next forward, drafts apart.
    pub(super) fn planned_len(&self) -> usize {
        self.plan.positions.end
    }

    /// Tokens of the next forward.
    pub(super) fn planned_tokens(&self) -> usize {
        self.plan.positions.len()
    }

    /// Pages that `drafts` more tokens take beyond those of the task's own.
    pub(super) fn draft_pages(&self, drafts: usize, chunk: usize) -> usize {
        let (more, block) = (self.missing() + self.block(), self.block());
        let cache = self.sequence.cache();
        let with = cache.pages_for(more + drafts, chunk + block + drafts);
        with.saturating_sub(cache.pages_for(more, chunk + block))
    }

    /// Adds the first `drafts` of the offered tokens to the next forward; none if the model does not take them.
    pub(super) fn take_drafts(&mut self, drafts: usize, shape: ModelShape) {
        let own = self.plan.positions.end;
        self.task.prepare(drafts);
        if let Err(error) = self.check_drafts(own, shape) {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "drafts are left out");
            self.tree = TreePaths::default();
            self.task.prepare(0);
        }
        self.plan.positions.end = self.task.tokens().len();
    }

    fn check_drafts(&mut self, own: usize, shape: ModelShape) -> Result<(), ForwardError> {
        let tokens = self.task.tokens();
        self.tree.read(self.task.parents(), tokens.len())?;
        let trunk = tokens.len() - self.tree.len();
        check_len(trunk + self.tree.depth(), shape.context_len)?;
        check_tokens(&tokens[own..], shape.vocab_size)
    }

    /// Forwards the first `part` missing tokens next.
    pub(super) fn forward_part(&mut self, part: usize) {
        self.waited = 0;
        let from = self.sequence.tokens().len();
        self.plan = ForwardPlan {
            positions: from..from + part,
            scored_from: from + part,
        };
    }

    /// Tokens of the next forward that stand before the scored ones, and those of a source to be read first.
    pub(super) fn prefilled(&self) -> usize {
        let ahead = self.plan.positions.end.min(self.whole_from);
        self.unread() + ahead.saturating_sub(self.plan.positions.start)
    }

    /// Whether the task has a share of the next forward.
    pub(super) fn is_planned(&self) -> bool {
        !self.plan.positions.is_empty()
    }

    /// This task's share of the next forward.
    pub(super) fn segment(&mut self) -> Segment<'_, C> {
        Segment {
            cache: self.sequence.cache_mut(),
            tokens: &self.task.tokens()[self.plan.positions.clone()],
            parents: self.plan.parents(&*self.task),
            scored_from: self.plan.scored_from - self.plan.positions.start,
        }
    }

    /// Number of rows the planned forward gives this task.
    pub(super) fn rows(&self) -> usize {
        self.plan.positions.end - self.plan.scored_from
    }

    /// Records the planned forward. Returns how many of the tokens had been forwarded before.
    pub(super) fn forwarded(&mut self, forward: Forward) -> usize {
        let tokens = &self.task.tokens()[self.plan.positions.clone()];
        let again = (self.sequence).extend(tokens, self.plan.parents(&*self.task));
        if let Some(submitted) = self.submitted.take() {
            self.timing.queue = forward.started.duration_since(submitted);
        }
        self.timing.forward += forward.elapsed;
        self.timing.forwarded_tokens += tokens.len();
        self.timing.batch_tokens = forward.tokens;
        self.timing.batch_sequences = forward.sequences;
        self.timing.row = forward.row;
        self.timing.price = forward.price;
        again
    }

    /// Tells the task how far it is, if the planned forward was a chunk of its prefill.
    pub(super) fn tell_progress(&mut self) {
        if self.rows() == 0 {
            let done = self.timing.forwarded_tokens;
            let left = self.missing() + self.block();
            self.task.prefilled(done, done + left);
        }
    }

    /// Hands the task its rows: `logits` is `(rows, vocab_size)`, `hidden` `(rows, hidden_size)` or
    /// empty.
    pub(super) fn step(&mut self, logits: &mut [f32], hidden: &[f32], shape: ModelShape) {
        let rows = StepRows {
            logits,
            hidden,
            vocab_size: shape.vocab_size,
            hidden_size: shape.hidden_size,
            timing: std::mem::take(&mut self.timing),
        };
        self.done = self.task.step(rows) == TaskProgress::Done;
    }
}
