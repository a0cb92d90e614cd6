//! What whoever drafts reports of a block.

use peer::Cost;
use speculation::TokenId;
use speculation::drafting::DraftToken;
use speculation::proposal::Proposal;
use wire::v1;

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
