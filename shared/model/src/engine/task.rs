//! What the engine is asked to do: a [`Task`] on one sequence, and what it gets for it.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use speculation::TokenId;
use thiserror::Error;

use crate::forward_error::ForwardError;

/// Names a sequence that outlives its tasks, so that the next task finds its keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u64);

/// Whether a task wants another forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum TaskProgress {
    /// Forward again: [`Task::tokens`] and [`Task::scored_from`] now say what.
    Continue,
    /// The task is done and is dropped; its sequence stays in its slot.
    Done,
}

/// What a task expects of the drafts for its next forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// None that a wait would pay for.
    Nothing,
    /// They are there.
    Here,
    /// They are about to come, until then.
    Until(Instant),
}

/// Work on one sequence that takes one or several forwards.
///
/// Before each forward the engine asks what the sequence must hold ([`Task::tokens`]) and which
/// rows are wanted ([`Task::scored_from`]), forwards what the slot's cache lacks, in several chunks
/// where that is much, and calls [`Task::step`] with the rows. So a task neither knows nor cares
/// what the cache held: after a rejection, an eviction or a retry it says the same tokens.
///
/// A task reports its results through channels of its own. All its methods run on the engine
/// thread, which serves every sequence: they must not block.
pub trait Task: Send + 'static {
    /// Everything the sequence must hold after the next forward, from its first token on: prompt,
    /// output, and the drafts to be scored.
    fn tokens(&self) -> &[TokenId];

    /// Returns what an encoder-decoder model's sequence is written from; [`Task::tokens`] are then the decoder's, start
    /// token first. Where it is not what the slot holds, it is encoded, whole, before anything is forwarded. Empty for
    /// a model without an encoder.
    fn source(&self) -> &[TokenId] {
        &[]
    }

    /// Index into [`Task::tokens`] of the first position whose row is wanted; the rows go on to the
    /// last position. The row of position `i` is the distribution of the token after `tokens[i]`. To decode,
    /// this is `tokens.len() - 1`; to verify a block of drafts, the last token before the block.
    /// Must be less than `tokens.len()`.
    fn scored_from(&self) -> usize;

    /// The last tokens form a tree, one entry each: the index of its parent among them, none for a child
    /// of the token before them. Empty for a chain.
    ///
    /// What the cache holds of it is not forwarded again: the path that the tokens after a tree went, and the first
    /// nodes of the tree after them, where the engine lets trees grow and the rows wanted come after these nodes.
    /// Otherwise a tree is forwarded whole, scored or not.
    fn parents(&self) -> &[Option<u32>] {
        &[]
    }

    /// Whether draft tokens may be scored beside the rows that the task needs.
    fn takes_drafts(&self) -> bool {
        false
    }

    /// Asked once a turn of a task that takes drafts and whose own rows are in the next forward: adds what each draft
    /// token is worth that could be scored beside them, the best first: the probability that it stands. `chain` asks for
    /// drafts that follow one another. The first of those offered, however many, must be a tree.
    fn offer(&mut self, _chain: bool, _worth: &mut Vec<f32>) {}

    /// Fixes what the task wants until its step: its own tokens, and the first `drafts` of those offered. What comes
    /// meanwhile is for the next turn.
    fn prepare(&mut self, _drafts: usize) {}

    /// Whether drafts are worth a wait before a forward, which takes about `forward`.
    fn awaited(&mut self, _forward: Duration) -> Awaited {
        Awaited::Nothing
    }

    /// Whether [`StepRows::hidden`] is wanted too.
    fn wants_hidden(&self) -> bool {
        false
    }

    /// Report after a forward that was a chunk of the prefill, so that the rows are yet to come: of `total`
    /// tokens that the step takes, `done` have been forwarded, those of an encoded source included. `total`
    /// grows if the sequence loses its memory in between.
    fn prefilled(&mut self, _done: usize, _total: usize) {}

    /// Takes the rows of positions `scored_from..tokens.len()` and says whether to go on.
    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress;

    /// Whether nobody waits for the result any more; asked before every forward. A cancelled task
    /// is dropped without a further call.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Ends the task with an error; no further call follows.
    fn fail(self: Box<Self>, error: TaskError);
}

/// The rows of one step, in the order of the positions.
#[derive(Debug)]
pub struct StepRows<'a> {
    /// All logits, `(rows, vocab_size)`, to be turned into distributions in place.
    pub logits: &'a mut [f32],
    pub(super) hidden: &'a [f32],
    /// Length of a logits row.
    pub vocab_size: usize,
    pub(super) hidden_size: usize,
    /// What the step cost.
    pub timing: StepTiming,
}

impl StepRows<'_> {
    /// Logits of row `row`, `(vocab_size)`.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.logits[row * self.vocab_size..][..self.vocab_size]
    }

    /// Logits of row `row`, `(vocab_size)`, to be turned into a distribution in place.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.logits[row * self.vocab_size..][..self.vocab_size]
    }

    /// Last hidden state of row `row` after the final norm, `(hidden_size)`; empty unless
    /// [`Task::wants_hidden`] and the model offers it.
    pub fn hidden(&self, row: usize) -> &[f32] {
        if self.hidden.is_empty() {
            return &[];
        }
        &self.hidden[row * self.hidden_size..][..self.hidden_size]
    }
}

/// What a step cost, for traces and verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTiming {
    /// From submission to the task's first forward; zero from its second step on.
    pub queue: Duration,
    /// Time in forwards since the task's last step, chunks of its prefill and its encoding included.
    pub forward: Duration,
    /// Tokens of this task forwarded since its last step, those of an encoded source included.
    pub forwarded_tokens: usize,
    /// Tokens that were not forwarded since its last step, because another sequence began with them.
    pub reused_tokens: usize,
    /// Tokens of all tasks in the step's last forward.
    pub batch_tokens: usize,
    /// Sequences in the step's last forward.
    pub batch_sequences: usize,
    /// The time that one more row adds to a forward, as measured lately. Zero until it was measured.
    pub row: Duration,
    /// The least probability of standing at which a draft token was worth a row of the step's last forward. Zero where
    /// no drafts were offered.
    pub price: f32,
}

/// Why the engine gave up on a task.
#[derive(Clone, Debug, Error)]
pub enum TaskError {
    /// The model does not take the sequence, or its source.
    #[error(transparent)]
    Refused(#[from] ForwardError),
    /// Keys and values of the sequence take more memory than all sequences together may.
    #[error(
        "the sequence takes the memory of {tokens} tokens, the engine's kv_tokens is {kv_tokens}: raise it"
    )]
    OverBudget {
        /// What the task needs.
        tokens: usize,
        /// What the engine has.
        kv_tokens: usize,
    },
    /// The task asked for no row.
    #[error("scored_from is {scored_from}, the task has {tokens} tokens: no row is wanted")]
    NothingScored {
        /// What [`Task::scored_from`] said.
        scored_from: usize,
        /// Length of what [`Task::tokens`] said.
        tokens: usize,
    },
    /// The model failed on the batch the task was in.
    #[error("the forward failed")]
    Forward(#[source] Arc<dyn Error + Send + Sync>),
    /// The model or a task of the same batch panicked.
    #[error("the engine panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: Arc<str>,
    },
}
