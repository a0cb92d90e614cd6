//! Proposals of draft tokens, and the counts of what became of them.

use super::digest::PathDigest;
use crate::TokenId;

/// Most nodes of one proposal, and most roots.
pub const MOST_PROPOSED: usize = 128;

/// Most output tokens that may have come since the position that a proposal is counted from.
pub const MOST_BEHIND: usize = 2 * MOST_PROPOSED;

/// Number of sources that are told apart.
pub const SOURCES: usize = 8;

/// The source of a proposed node, and the survival that it claims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Number of the source that proposes the node; below [`SOURCES`].
    pub source: u8,
    /// The probability that it and its path stand if the path to its root does, as the source claims it: above 0, and no
    /// more than that of the node before it.
    pub survival: f32,
}

/// What a proposed node follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// The root with this number.
    Root(u32),
    /// The node with this number, which stands before it in the proposal.
    Node(u32),
}

/// A proposed draft token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProposedNode {
    /// The token.
    pub token: TokenId,
    /// What it follows.
    pub parent: Parent,
    /// Who claims what of it.
    pub claim: Claim,
}

/// Draft tokens proposed to follow an output, or what is pending after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposedTree {
    /// Number of output tokens that the ways to the roots begin after.
    pub after: u32,
    /// What the nodes grow on: each the digest of the tokens on the way there.
    pub roots: Vec<PathDigest>,
    /// The nodes, parents before children. Two of them that are the same token after the same are one.
    pub nodes: Vec<ProposedNode>,
}

impl ProposedTree {
    /// A proposal of `nodes`, each with the number of the one that it follows, parents before children; those without one follow
    /// `path`, the tokens after the first `after` of the output.
    pub fn new(
        after: u32,
        path: &[TokenId],
        nodes: impl IntoIterator<Item = (TokenId, Option<u32>, Claim)>,
    ) -> Self {
        let nodes = nodes.into_iter();
        let nodes = nodes.map(|(token, parent, claim)| ProposedNode {
            token,
            parent: parent.map_or(Parent::Root(0), Parent::Node),
            claim,
        });
        Self {
            after,
            roots: vec![PathDigest::of(path)],
            nodes: nodes.collect(),
        }
    }

    /// A proposal of `tokens` one after the other, the first after `path`.
    pub fn chain(
        after: u32,
        path: &[TokenId],
        tokens: impl IntoIterator<Item = (TokenId, Claim)>,
    ) -> Self {
        let nodes = tokens.into_iter().zip(0_u32..);
        let nodes = nodes.map(|((token, claim), at)| (token, at.checked_sub(1), claim));
        Self::new(after, path, nodes)
    }
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
