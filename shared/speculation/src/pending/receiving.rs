//! Adds the part of a proposal that fits the output to the pending tree.

use super::{
    Bounds, Claim, MOST_BEHIND, Node, Parent, PathDigest, PendingTree, ProposedNode, ProposedTree,
    ROOM, Received,
};
use crate::TokenId;

/// Of a node that was dropped, or was never there.
const NOWHERE: Standing = Standing {
    place: Place::Nowhere,
    claimed: 0.0,
    scale: 0.0,
};

/// Where a proposed node, or a root, stands.
#[derive(Clone, Copy)]
enum Place {
    /// The output holds it, as the last of so many of the tokens that came since the proposal's position.
    Output(usize),
    /// It is this node of the pending tree.
    Node(u32),
    /// Nowhere: it was dropped.
    Nowhere,
}

/// Where a proposed node stands, and what its survival is relative to.
#[derive(Clone, Copy)]
struct Standing {
    place: Place,
    /// The survival that is claimed of it; that of a root is 1.
    claimed: f32,
    /// What a claim is multiplied with: the root stands with this survival, or the output has come to hold a node whose claim
    /// this is the inverse of.
    scale: f32,
}

impl PendingTree {
    /// Takes what of `proposed` fits the end of `output`. A node that is there already keeps its source, and the larger
    /// survival. A node falls off with all that grow on it.
    pub fn receive(
        &mut self,
        proposed: &ProposedTree,
        output: &[TokenId],
        bounds: Bounds<'_>,
    ) -> Received {
        let mut received = Received::default();
        let emitted = output.get(proposed.after as usize..);
        let Some(emitted) = emitted.filter(|emitted| emitted.len() <= MOST_BEHIND) else {
            received.stale = proposed.nodes.len() as u32;
            return received;
        };
        let roots = self.roots(&proposed.roots, emitted);
        let mut standings: Vec<Standing> = Vec::with_capacity(proposed.nodes.len());
        for node in &proposed.nodes {
            let parent = match node.parent {
                Parent::Root(root) => roots.get(root as usize),
                Parent::Node(node) => standings.get(node as usize),
            };
            let parent = *parent.unwrap_or(&NOWHERE);
            let standing = self.stand(parent, node, emitted, bounds, &mut received);
            standings.push(standing);
        }
        received
    }

    /// Finds or makes a place for `node` after `parent`; `emitted` are the tokens since the proposal's position.
    fn stand(
        &mut self,
        parent: Standing,
        node: &ProposedNode,
        emitted: &[TokenId],
        bounds: Bounds<'_>,
        received: &mut Received,
    ) -> Standing {
        let survival = node.claim.survival;
        let mut standing = Standing {
            claimed: survival,
            ..parent
        };
        let next = match parent.place {
            Place::Output(held) => emitted.get(held).map(|&next| (held, next)),
            Place::Node(_) | Place::Nowhere => None,
        };
        let is_valid = survival > 0.0 && survival <= parent.claimed;
        standing.place = match (parent.place, next) {
            (Place::Nowhere, _) => {
                received.stale += 1;
                Place::Nowhere
            }
            _ if !is_valid => {
                received.malformed += 1;
                Place::Nowhere
            }
            (_, Some((held, next))) if next == node.token => {
                // What follows is relative to it.
                standing.scale = 1.0 / survival;
                Place::Output(held + 1)
            }
            (_, Some(_)) => {
                received.stale += 1;
                Place::Nowhere
            }
            (place, None) => {
                let survival = survival * parent.scale;
                let claim = Claim {
                    survival,
                    ..node.claim
                };
                self.grow(place, node.token, claim, bounds, received)
            }
        };
        standing
    }

    /// Finds the roots of a proposal: in the output, of which `emitted` are the tokens since the proposal's position, and among
    /// what is pending after it.
    fn roots(&self, roots: &[PathDigest], emitted: &[TokenId]) -> Vec<Standing> {
        let mut found = vec![NOWHERE; roots.len()];
        let mut meet = |digest: PathDigest, place, scale| {
            let roots = roots.iter().zip(&mut found);
            for (_, found) in roots.filter(|(root, _)| **root == digest) {
                *found = Standing {
                    place,
                    claimed: 1.0,
                    scale,
                };
            }
        };
        let mut digest = PathDigest::EMPTY;
        meet(digest, Place::Output(0), 1.0);
        for (&token, held) in emitted.iter().zip(1..) {
            digest = digest.then(token);
            meet(digest, Place::Output(held), 1.0);
        }
        let end = digest;
        let mut digests: Vec<PathDigest> = Vec::with_capacity(self.nodes.len());
        for (node, at) in self.nodes.iter().zip(0_u32..) {
            let parent = node.parent.map_or(end, |parent| digests[parent as usize]);
            let digest = parent.then(node.token);
            meet(digest, Place::Node(at), node.claim.survival);
            digests.push(digest);
        }
        found
    }

    /// Adds `token` after `parent`, or finds it there.
    fn grow(
        &mut self,
        parent: Place,
        token: TokenId,
        claim: Claim,
        bounds: Bounds<'_>,
        received: &mut Received,
    ) -> Place {
        let parent = match parent {
            Place::Node(parent) => Some(parent),
            Place::Output(_) | Place::Nowhere => None,
        };
        let depth = parent.map_or(0, |parent| self.nodes[parent as usize].depth + 1);
        let follows_end =
            parent.is_some_and(|parent| bounds.ends.contains(&self.nodes[parent as usize].token));
        // A node survives no more often than its parent, whatever was claimed of the parent before.
        let most = parent.map_or(1.0, |parent| self.nodes[parent as usize].claim.survival);
        let survival = claim.survival.min(most);
        let is_out = token >= bounds.vocab_size || depth >= bounds.levels || follows_end;
        // Deep on an unlikely path the product underflows to 0.
        if is_out || survival <= 0.0 {
            received.malformed += 1;
            return Place::Nowhere;
        }
        if let Some(found) = self.child(parent, token) {
            let held = &mut self.nodes[found as usize].claim.survival;
            *held = held.max(survival);
            return Place::Node(found);
        }
        if self.nodes.len() == ROOM {
            received.without_room += 1;
            return Place::Nowhere;
        }
        received.new += 1;
        self.nodes.push(Node {
            token,
            parent,
            depth,
            claim: Claim { survival, ..claim },
        });
        Place::Node(self.nodes.len() as u32 - 1)
    }
}
