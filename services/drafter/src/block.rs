//! A draft block on its way out, cut into messages.

use std::time::{Duration, Instant};

use model::engine::StepFigures;
use server::trace::Share;
use speculation::drafting::{Growth, TreeShape};
use speculation::proposal::{Proposal, ProposalForm};
use wire::round::Round;
use wire::{drafting, proposal, v1};

use crate::report::{Drawn, Ending};

/// A block while it is drafted.
pub(crate) struct Draft {
    header: v1::ReplyHeader,
    form: ProposalForm,
    began: Instant,
    tokens_per_block: usize,
    is_tree: bool,
    nodes: Growth,
    proposals: Vec<Proposal>,
    /// What is told of the position after the block.
    bonus: Option<Proposal>,
    timing: v1::Timing,
    forwards: Vec<u32>,
    /// Models that forward; 0 before the end.
    models: u32,
    /// Tokens already in `blocks`.
    sent: usize,
    blocks: Vec<v1::DraftBlock>,
}

impl Draft {
    /// An empty block of shape `tree` that answers `round` and tells laws in `form`, cut into messages of
    /// `tokens_per_block` (0: one).
    pub(crate) fn new(
        round: &Round,
        form: ProposalForm,
        tree: TreeShape,
        tokens_per_block: u32,
        began: Instant,
    ) -> Self {
        Self {
            header: round.reply_header(false),
            form,
            began,
            tokens_per_block: match tokens_per_block {
                0 => usize::MAX,
                tokens => tokens as usize,
            },
            is_tree: tree != TreeShape::Chain,
            nodes: Growth::default(),
            proposals: Vec::new(),
            bonus: None,
            timing: v1::Timing::default(),
            forwards: Vec::new(),
            models: 0,
            sent: 0,
            blocks: Vec::new(),
        }
    }

    /// Adds a drafted token, with its siblings in a tree.
    pub(crate) fn add(&mut self, drawn: Drawn) {
        self.nodes.push(drawn.token.id, &drawn.siblings);
        self.proposals.push(drawn.token.proposal);
    }

    /// Ends the block: what is told of the position after it, and the forwards of each model.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.bonus = ending.bonus;
        self.models = ending.forwards.len() as u32;
        self.forwards = ending.forwards;
    }

    /// Counts what a forward cost.
    pub(crate) fn count(&mut self, figures: StepFigures) {
        self.timing.queue_us += figures.queue.as_micros() as u32;
        self.timing.forward_us += figures.forward.as_micros() as u32;
        self.timing.batch = self.timing.batch.max(figures.batch_sequences as u32);
        self.timing.forwarded_tokens += figures.forwarded_tokens as u32;
    }

    /// Where the time went. The first round of a session forwards its prompt; a later one that forwards more
    /// than it drafts brings a session up to date that was lost.
    pub(crate) fn share(&self, is_first: bool) -> Share {
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let nodes = self.nodes.tokens().len() as u32;
        let drafting = self.models * (2 * nodes + 2);
        Share {
            queue: micros(self.timing.queue_us),
            forward: micros(self.timing.forward_us),
            accept: Duration::ZERO,
            batch: self.timing.batch,
            forwarded_tokens: self.timing.forwarded_tokens,
            prefills: is_first || self.timing.forwarded_tokens > drafting,
        }
    }

    /// The next message, once it is full or the block has ended.
    pub(crate) fn take_block(&mut self, cause: Option<v1::StopCause>) -> Option<v1::DraftBlock> {
        let nodes = self.nodes.tokens().len();
        if cause.is_none() && nodes - self.sent < self.tokens_per_block {
            return None;
        }
        let mut tree = v1::TokenTree {
            token_ids: self.nodes.tokens()[self.sent..].to_vec(),
            parents: Vec::new(),
        };
        if self.is_tree {
            tree.parents = drafting::parents_to_wire(&self.nodes.parents()[self.sent..]);
        }
        let told = |bonus| proposal::one_to_wire(bonus, self.form);
        self.timing.total_us = self.began.elapsed().as_micros() as u32;
        let block = v1::DraftBlock {
            header: Some(self.header),
            offset: self.sent as u32,
            tree: Some(tree),
            proposals: proposal::to_wire(std::mem::take(&mut self.proposals), self.form),
            bonus: self.bonus.take().map(told),
            last: cause.is_some(),
            stop_cause: cause.unwrap_or_default().into(),
            timing: cause.map(|_| self.timing),
            forwards: std::mem::take(&mut self.forwards),
        };
        self.sent = nodes;
        self.blocks.push(block.clone());
        Some(block)
    }

    /// What it cost so far.
    pub(crate) fn timing(&self) -> v1::Timing {
        self.timing
    }

    /// The messages taken so far.
    pub(crate) fn into_blocks(self) -> Vec<v1::DraftBlock> {
        self.blocks
    }
}
