//! A draft block on its way out, cut into messages.

use std::time::Instant;

use model::engine::StepFigures;
use speculation::proposal::{Proposal, ProposalForm};
use wire::round::Round;
use wire::{proposal, v1};

/// A block while it is drafted.
pub(crate) struct Draft {
    header: v1::ReplyHeader,
    form: ProposalForm,
    began: Instant,
    tokens_per_block: usize,
    tokens: Vec<u32>,
    proposals: Vec<Proposal>,
    /// What is told of the position after the block.
    bonus: Option<Proposal>,
    timing: v1::Timing,
    /// Tokens already in `blocks`.
    sent: usize,
    blocks: Vec<v1::DraftBlock>,
}

impl Draft {
    /// An empty block that answers `round` and tells laws in `form`, cut into messages of `tokens_per_block` (0: one).
    pub(crate) fn new(
        round: &Round,
        form: ProposalForm,
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
            tokens: Vec::new(),
            proposals: Vec::new(),
            bonus: None,
            timing: v1::Timing::default(),
            sent: 0,
            blocks: Vec::new(),
        }
    }

    /// Tokens drafted.
    pub(crate) fn len(&self) -> u32 {
        self.tokens.len() as u32
    }

    /// Adds a drafted token.
    pub(crate) fn add(&mut self, token: u32, proposal: Proposal, figures: StepFigures) {
        self.tokens.push(token);
        self.proposals.push(proposal);
        self.count(figures);
    }

    /// Adds the law at the position after the block, if it was asked for.
    pub(crate) fn end(&mut self, bonus: Option<Proposal>, figures: StepFigures) {
        self.bonus = bonus;
        self.count(figures);
    }

    fn count(&mut self, figures: StepFigures) {
        self.timing.queue_us += figures.queue.as_micros() as u32;
        self.timing.forward_us += figures.forward.as_micros() as u32;
        self.timing.batch = self.timing.batch.max(figures.batch_sequences as u32);
    }

    /// The next message, once it is full or the block has ended.
    pub(crate) fn take_block(&mut self, cause: Option<v1::StopCause>) -> Option<v1::DraftBlock> {
        if cause.is_none() && self.tokens.len() - self.sent < self.tokens_per_block {
            return None;
        }
        let tree = v1::TokenTree {
            token_ids: self.tokens[self.sent..].to_vec(),
            parents: Vec::new(),
        };
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
        };
        self.sent = self.tokens.len();
        self.blocks.push(block.clone());
        Some(block)
    }

    /// The messages taken so far.
    pub(crate) fn into_blocks(self) -> Vec<v1::DraftBlock> {
        self.blocks
    }
}
