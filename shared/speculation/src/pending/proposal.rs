//! Proposals of draft tokens, and the counts of what became of them.

use crate::TokenId;
use crate::draft_tree::DraftTree;

/// Most nodes of one proposal, and most tokens on the way to its root.
pub const MOST_PROPOSED: usize = 128;

/// Number of sources that are told apart.
pub const SOURCES: usize = 8;

/// The source of a proposed node, and the survival that it claims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Number of the source that proposes the node; below [`SOURCES`].
    pub source: u8,
    /// The probability that it and its path stand if the path to the root does, as the source claims it: above 0, and no
    /// more than that of the node before it.
    pub survival: f32,
}

/// Draft tokens proposed to follow an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposedTree {
    /// Number of output tokens that it builds on.
    pub after: u32,
    /// Tokens from there to the root of the tree.
    pub path: Vec<TokenId>,
    /// The tokens after these.
    pub tree: DraftTree,
    /// One for each node.
    pub claims: Vec<Claim>,
}

/// What may be proposed at the end of an output.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// Most levels: nothing beyond them could be emitted.
    pub levels: u32,
    /// Token ids are below this.
    pub vocab_size: u32,
    /// Tokens that end the output: nothing follows them.
    pub ends: &'a [TokenId],
}

/// Counts of the nodes of a proposal by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Nodes that are new.
    pub new: u32,
    /// Nodes that do not follow the output, any more or at all.
    pub stale: u32,
    /// Nodes that the tree has no room for.
    pub without_room: u32,
    /// Nodes that are out of bounds, or whose survival is no valid probability.
    pub malformed: u32,
}
