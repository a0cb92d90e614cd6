//! A draft block on its way out, cut into messages, and what drafting tells of each token.

use std::time::Instant;

use ops::trace::TimeBreakdown;
use peer::{Cost, Role, Turn};
use speculation::TokenId;
use speculation::drafting::{DraftToken, TreeBuilder, TreeShape};
use speculation::proposal::{Proposal, ProposalForm};
use wire::{drafting, proposal, v1};

/// A block while it is drafted.
pub(crate) struct Draft {
    header: v1::ReplyHeader,
    form: ProposalForm,
    began: Instant,
    sessions: usize,
    tokens_per_block: usize,
    is_tree: bool,
    nodes: TreeBuilder,
    proposals: Vec<Proposal>,
    /// What is told of the position after the block.
    bonus: Option<Proposal>,
    /// What it cost so far.
    pub(crate) cost: Cost,
    forwards: Vec<u32>,
    /// Models that forward; 0 before the end.
    models: usize,
    /// Tokens already in `blocks`.
    sent: usize,
    blocks: Vec<v1::DraftBlock>,
}

impl Draft {
    /// An empty block of shape `tree` that answers the round of `turn`, with proposals in `form`, cut into messages
    /// of `tokens_per_block` (0: one). `sessions` is the number that the drafter serves, for its timing.
    pub(crate) fn new<R: Role>(
        turn: &Turn<'_, R>,
        sessions: usize,
        form: ProposalForm,
        tree: TreeShape,
        tokens_per_block: u32,
    ) -> Self {
        Self {
            header: turn.round.reply_header(false),
            form,
            began: turn.began,
            sessions,
            tokens_per_block: match tokens_per_block {
                0 => usize::MAX,
                tokens => tokens as usize,
            },
            is_tree: tree != TreeShape::Chain,
            nodes: TreeBuilder::default(),
            proposals: Vec::new(),
            bonus: None,
            cost: Cost::default(),
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
        self.models = ending.forwards.len();
        self.forwards = ending.forwards;
    }

    /// Where the time went. The first round of a session forwards its prompt; a later one that forwards more
    /// than it drafts brings a session up to date that was lost.
    pub(crate) fn share(&self, is_first: bool) -> TimeBreakdown {
        let drafting = self.models * (2 * self.nodes.tokens().len() + 2);
        let prefills = is_first || self.cost.step.forwarded_tokens > drafting;
        self.cost.share(prefills)
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
        let reported = |bonus| proposal::one_to_wire(bonus, self.form);
        let block = v1::DraftBlock {
            header: Some(self.header),
            offset: self.sent as u32,
            tree: Some(tree),
            proposals: proposal::to_wire(std::mem::take(&mut self.proposals), self.form),
            bonus: self.bonus.take().map(reported),
            last: cause.is_some(),
            stop_cause: cause.unwrap_or_default().into(),
            timing: cause.map(|_| self.cost.timing(self.began, self.sessions)),
            forwards: std::mem::take(&mut self.forwards),
        };
        self.sent = nodes;
        self.blocks.push(block.clone());
        Some(block)
    }

    /// The messages taken so far.
    pub(crate) fn into_blocks(self) -> Vec<v1::DraftBlock> {
        self.blocks
    }
}

/// A step of a block: its next token, its end, or both.
#[derive(Debug, Default)]
pub(crate) struct Drafted {
    /// The next token.
    pub(crate) drawn: Option<Drawn>,
    /// The end of the block, after `drawn`.
    pub(crate) ending: Option<Ending>,
    /// Where the time went.
    pub(crate) cost: Cost,
}

/// A draft token.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) token: DraftToken,
    /// What stands beside it in a tree.
    pub(crate) siblings: Vec<TokenId>,
}

/// The end of a block.
#[derive(Debug)]
pub(crate) struct Ending {
    /// Why it ends.
    pub(crate) cause: v1::StopCause,
    /// What is told of the position after it, if that was asked for.
    pub(crate) bonus: Option<Proposal>,
    /// Forwards of each draft model, the largest first; of one model at least, so that a block without
    /// any is told from one whose forwards are not told.
    pub(crate) forwards: Vec<u32>,
}
