//! Draft tokens on their way: what several sources propose to follow the output, while the target decodes.
//!
//! With [coupled verification](crate::verification::tree) the target's token never depends on a draft, so a proposal may
//! come at any time and be wrong, late, lost or doubled without harm: it decides which rows a forward holds, nothing else.
//! It names the position that it builds on and, by their [digest](PathDigest), the tokens from there to its roots, so that one
//! that does not fit the output falls off by itself.
//!
//! Coordinator and verifier keep a [`PendingTree`] each: the one to offer it again where a session goes on elsewhere, the
//! other to choose what the next forward scores.

mod digest;
mod proposal;
mod receiving;
mod trust;

use crate::TokenId;
use crate::constraint::Constraint;
use crate::draft_tree::{DraftTree, beneath};
pub use digest::PathDigest;
pub use proposal::{
    Bounds, Claim, MOST_BEHIND, MOST_PROPOSED, Parent, ProposedNode, ProposedTree, Received,
    SOURCES,
};
pub use trust::Trust;

/// Most nodes of a pending tree.
pub const ROOM: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    token: TokenId,
    parent: Option<u32>,
    depth: u32,
    claim: Claim,
}

/// A bounded tree of the draft tokens that may follow the output, parents before children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PendingTree {
    nodes: Vec<Node>,
}

impl PendingTree {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Nodes that there is room for.
    pub fn room(&self) -> usize {
        ROOM - self.nodes.len()
    }

    /// Number of levels: tokens of the longest path.
    pub fn levels(&self) -> u32 {
        let deepest = self.nodes.iter().map(|node| node.depth + 1);
        deepest.max().unwrap_or(0)
    }

    /// Returns the child of `node` (none: the output) that holds `token`.
    fn child(&self, node: Option<u32>, token: TokenId) -> Option<u32> {
        let first = node.map_or(0, |node| node as usize + 1);
        let found = (first..self.nodes.len()).find(|&at| {
            let it = &self.nodes[at];
            it.parent == node && it.token == token
        });
        found.map(|found| found as u32)
    }

    /// Returns how many of `tokens`, the first ones, are pending one after the other.
    pub fn shared(&self, tokens: &[TokenId]) -> usize {
        let mut node = None;
        let pending = tokens.iter().take_while(|&&token| {
            let child = self.child(node, token);
            node = child;
            child.is_some()
        });
        pending.count()
    }

    /// Drops the nodes that `constraint`, which stands at the end of the output, does not allow, and their descendants. Returns
    /// the number of nodes dropped.
    pub fn keep_fitting(&mut self, constraint: &dyn Constraint) -> u32 {
        let before = self.nodes.len();
        let mut fits = vec![false; before];
        let inner: Vec<u32> = self.nodes.iter().filter_map(|node| node.parent).collect();
        for leaf in (0..before as u32).filter(|at| !inner.contains(at)) {
            let up = |at: &u32| self.nodes[*at as usize].parent;
            let mut path: Vec<u32> = std::iter::successors(Some(leaf), up).collect();
            path.reverse();
            let tokens = path.iter().map(|&at| self.nodes[at as usize].token);
            let fitting = constraint.fitting(&tokens.collect::<Vec<_>>());
            for &at in &path[..fitting.min(path.len())] {
                fits[at as usize] = true;
            }
        }
        let mut moved: Vec<u32> = Vec::with_capacity(before);
        let mut kept = Vec::new();
        for (node, fits) in self.nodes.iter().zip(fits) {
            moved.push(kept.len() as u32);
            if fits {
                let parent = node.parent.map(|parent| moved[parent as usize]);
                kept.push(Node { parent, ..*node });
            }
        }
        self.nodes = kept;
        (before - self.nodes.len()) as u32
    }

    /// Follows the output, which grew by `token`: what is pending after it stays, all else falls off. Returns the source
    /// that proposed it first, if one did, and how many nodes fell off.
    pub fn advance(&mut self, token: TokenId) -> (Option<u8>, u32) {
        let before = self.nodes.len() as u32;
        let Some(chosen) = self.child(None, token) else {
            self.nodes.clear();
            return (None, before);
        };
        let taken = self.nodes[chosen as usize].claim;
        let moved = beneath(self.nodes.iter().map(|node| node.parent), chosen as usize);
        let stays = self
            .nodes
            .iter()
            .zip(&moved)
            .filter(|(_, moved)| moved.is_some());
        let kept = stays.map(|(node, _)| Node {
            parent: node.parent.and_then(|parent| moved[parent as usize]),
            depth: node.depth - 1,
            claim: Claim {
                survival: (node.claim.survival / taken.survival).min(1.0),
                ..node.claim
            },
            ..*node
        });
        let kept: Vec<Node> = kept.collect();
        let fell_off = before - 1 - kept.len() as u32;
        self.nodes = kept;
        (Some(taken.source), fell_off)
    }

    /// Returns the nodes of at most `levels` levels with what each is worth, the best first: the probability that it
    /// stands, as far as `trust` believes its source. With `chain` no two of them follow the same. A node is worth no more
    /// than the one that it follows, so the first of them, however many, are a tree.
    pub fn ranked(&self, levels: u32, chain: bool, trust: &Trust) -> Vec<(u32, f32)> {
        let mut worth: Vec<f32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let parent = node.parent.map_or(1.0, |parent| worth[parent as usize]);
            worth.push(parent.min(node.claim.survival * trust.share(node.claim.source)));
        }
        let nodes = self.nodes.iter().zip(0_u32..).zip(&worth);
        let mut ranked: Vec<_> = nodes
            .filter(|((node, _), _)| node.depth < levels)
            .map(|((_, at), &worth)| (at, worth))
            .collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        if chain {
            let mut end = None;
            ranked.retain(|&(at, _)| {
                let goes_on = self.nodes[at as usize].parent == end;
                if goes_on {
                    end = Some(at);
                }
                goes_on
            });
        }
        ranked
    }

    /// Returns the tree of `nodes`, which are some of the first of [`Self::ranked`], and what is claimed of each.
    pub fn tree_of(&self, nodes: &[(u32, f32)]) -> (DraftTree, Vec<Claim>) {
        let mut chosen: Vec<u32> = nodes.iter().map(|&(at, _)| at).collect();
        chosen.sort_unstable();
        let of = |at: u32| chosen.binary_search(&at).ok().map(|index| index as u32);
        let held = chosen.iter().map(|&at| &self.nodes[at as usize]);
        let tokens = held.clone().map(|node| node.token).collect();
        let parents = held.clone().map(|node| node.parent.and_then(of)).collect();
        let claims = held.map(|node| node.claim).collect();
        // Parents stand before children and siblings differ, so it is one.
        let tree = DraftTree::new(tokens, parents).unwrap_or_default();
        (tree, claims)
    }

    /// Returns what is pending as one proposal after `after` output tokens; the nodes worth least are left out where there
    /// are too many for one.
    pub fn again(&self, after: u32) -> ProposedTree {
        let mut nodes = self.ranked(u32::MAX, false, &Trust::default());
        nodes.truncate(MOST_PROPOSED);
        let (tree, claims) = self.tree_of(&nodes);
        let nodes = tree.tokens().iter().zip(claims).enumerate();
        let nodes = nodes.map(|(at, (&token, claim))| {
            let parent = tree.parent(at).map(|parent| parent as u32);
            (token, parent, claim)
        });
        ProposedTree::new(after, &[], nodes)
    }
}

#[cfg(test)]
mod tests;
