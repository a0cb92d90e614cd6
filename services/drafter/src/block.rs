//! A draft block on its way out, cut into messages, and what drafting tells of each token.

use std::time::Instant;

use ops::trace::TimeBreakdown;
use peer::Cost;
use speculation::TokenId;
use speculation::drafting::{TreeBuilder, TreeShape};
use speculation::proposal::{Proposal, ProposalForm, ProposalProbs};
use wire::v1::round_answer::Part;
use wire::{drafting, proposal, v1};

/// A block while it is drafted.
pub(crate) struct BlockWriter {
    form: ProposalForm,
    began: Instant,
    sessions: usize,
    tokens_per_block: usize,
    is_tree: bool,
    nodes: TreeBuilder,
    proposals: Vec<Proposal>,
    /// The end, once it is known.
    end: Option<BlockEnd>,
    /// What it cost so far.
    pub(crate) cost: Cost,
    /// Tokens already in `parts`.
    sent: usize,
    parts: Vec<Part>,
}

impl BlockWriter {
    /// Returns an empty block of shape `tree` for a round that came at `began`, with proposals in `form`, cut into
    /// messages of `tokens_per_block` (0: one). `sessions` is the number that the drafter serves, for its timing.
    pub(crate) fn new(
        began: Instant,
        sessions: usize,
        form: ProposalForm,
        tree: TreeShape,
        tokens_per_block: u32,
    ) -> Self {
        Self {
            form,
            began,
            sessions,
            tokens_per_block: match tokens_per_block {
                0 => usize::MAX,
                tokens => tokens as usize,
            },
            is_tree: tree != TreeShape::Chain,
            nodes: TreeBuilder::default(),
            proposals: Vec::new(),
            end: None,
            cost: Cost::default(),
            sent: 0,
            parts: Vec::new(),
        }
    }

    /// Adds a step of the block.
    pub(crate) fn add(&mut self, step: DraftStep) {
        self.cost.add(&step.cost);
        if let Some(node) = step.drawn {
            self.nodes.push(node.id, &node.siblings);
            self.proposals.push(node.proposal);
        }
        self.end = step.ending;
    }

    /// Returns whether the block has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns where the time went. The first round of a session forwards its prompt; a later one that forwards more
    /// than it drafts brings a session up to date that was lost.
    pub(crate) fn share(&self, is_first: bool) -> TimeBreakdown {
        let models = self.end.as_ref().map_or(0, |end| end.forwards.len());
        let drafting = models * (2 * self.nodes.tokens().len() + 2);
        let prefills = is_first || self.cost.step.forwarded_tokens > drafting;
        self.cost.share(prefills)
    }

    /// Returns the next message, once it is full or the block has ended.
    pub(crate) fn take_block(&mut self) -> Option<v1::DraftBlock> {
        let nodes = self.nodes.tokens().len();
        if self.end.is_none() && nodes - self.sent < self.tokens_per_block {
            return None;
        }
        let mut tree = v1::TokenTree {
            token_ids: self.nodes.tokens()[self.sent..].to_vec(),
            parents: Vec::new(),
        };
        if self.is_tree {
            tree.parents = drafting::parents_to_wire(&self.nodes.parents()[self.sent..]);
        }
        let mut block = v1::DraftBlock {
            offset: self.sent as u32,
            tree: Some(tree),
            proposals: proposal::to_wire(std::mem::take(&mut self.proposals), self.form),
            ..Default::default()
        };
        if let Some(end) = &mut self.end {
            let bonus = end.bonus.take();
            block.bonus = bonus.map(|bonus| proposal::one_to_wire(bonus, self.form));
            block.last = true;
            block.stop_cause = end.cause.into();
            block.timing = Some(self.cost.timing(self.began, self.sessions));
            block.forwards.clone_from(&end.forwards);
        }
        self.sent = nodes;
        self.parts.push(Part::Block(block.clone()));
        Some(block)
    }

    /// Returns the messages taken so far.
    pub(crate) fn into_parts(self) -> Vec<Part> {
        self.parts
    }
}

/// A step of a block: its next token, its end, or both.
#[derive(Debug, Default)]
pub(crate) struct DraftStep {
    /// The next token.
    pub(crate) drawn: Option<DraftNode>,
    /// The end of the block, after `drawn`.
    pub(crate) ending: Option<BlockEnd>,
    /// Where the time went.
    pub(crate) cost: Cost,
}

impl DraftStep {
    /// Returns the step to token `id` with what is told of its distribution, and what stands beside it in a tree.
    pub(crate) fn to(id: TokenId, probs: ProposalProbs, siblings: Vec<TokenId>) -> Self {
        let proposal = Proposal {
            probs,
            ..Default::default()
        };
        Self {
            drawn: Some(DraftNode {
                id,
                proposal,
                siblings,
            }),
            ..Self::default()
        }
    }
}

/// A draft token.
#[derive(Debug)]
pub(crate) struct DraftNode {
    pub(crate) id: TokenId,
    /// Its distribution, as sent.
    pub(crate) proposal: Proposal,
    /// What stands beside it in a tree.
    pub(crate) siblings: Vec<TokenId>,
}

/// The end of a block.
#[derive(Debug)]
pub(crate) struct BlockEnd {
    /// Why it ends.
    pub(crate) cause: v1::StopCause,
    /// What is told of the position after it, if that was asked for.
    pub(crate) bonus: Option<Proposal>,
    /// Forwards of each draft model, the largest first; of one model at least, so that a block without
    /// any is told from one whose forwards are not told.
    pub(crate) forwards: Vec<u32>,
}
