//! Adds the part of a proposal that fits the output to the pending tree.

use super::{Bounds, Claim, Node, PendingTree, ProposedTree, ROOM, Received};
use crate::TokenId;

/// Where a proposed node stands.
#[derive(Clone, Copy)]
enum Place {
    /// The output already holds the node.
    Output,
    /// The node is this one of the pending tree.
    Node(u32),
    /// The node was dropped.
    Nowhere,
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
        let Some((emitted, root)) = self.root(proposed, output) else {
            received.stale = proposed.tree.len() as u32;
            return received;
        };
        let base = self.survival(root);
        // Survival claimed of the last proposed node that the output already holds; the rest is relative to it.
        let mut claimed_of_output = 1.0;
        let mut places: Vec<(Place, f32, usize)> = Vec::with_capacity(proposed.tree.len());
        for (at, &token) in proposed.tree.tokens().iter().enumerate() {
            let parent = proposed.tree.parent(at).map(|parent| places[parent]);
            let (parent, before, level) = parent
                .map_or((root, 1.0, 0), |(place, claimed, level)| {
                    (place, claimed, level + 1)
                });
            let claim = proposed.claims.get(at).copied();
            let claim = claim.filter(|it| it.survival > 0.0 && it.survival <= before);
            let place = match (parent, emitted.get(level), claim) {
                (Place::Nowhere, ..) => {
                    received.stale += 1;
                    Place::Nowhere
                }
                (_, _, None) => {
                    received.malformed += 1;
                    Place::Nowhere
                }
                (_, Some(&emitted_here), _) if emitted_here != token => {
                    received.stale += 1;
                    Place::Nowhere
                }
                (_, Some(_), Some(claim)) => {
                    if level + 1 == emitted.len() {
                        claimed_of_output = claim.survival;
                    }
                    Place::Output
                }
                (parent, None, Some(claim)) => {
                    let survival = base * (claim.survival / claimed_of_output);
                    let claim = Claim { survival, ..claim };
                    self.grow(parent, token, claim, bounds, &mut received)
                }
            };
            places.push((place, claim.map_or(0.0, |claim| claim.survival), level));
        }
        received
    }

    /// Finds the root of `proposed`: the tokens that were emitted after it by now, and the node that it grows on if it is
    /// beyond the output. None if it does not fit.
    fn root<'o>(
        &self,
        proposed: &ProposedTree,
        output: &'o [TokenId],
    ) -> Option<(&'o [TokenId], Place)> {
        let emitted = output.get(proposed.after as usize..)?;
        let shared = emitted.len().min(proposed.path.len());
        let (repeated, pending) = proposed.path.split_at(shared);
        if repeated != &emitted[..shared] {
            return None;
        }
        let mut node = None;
        for &token in pending {
            node = Some(self.child(node, token)?);
        }
        Some((&emitted[shared..], node.map_or(Place::Output, Place::Node)))
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
            Place::Output | Place::Nowhere => None,
        };
        let depth = parent.map_or(0, |parent| self.nodes[parent as usize].depth + 1);
        let follows_end =
            parent.is_some_and(|parent| bounds.ends.contains(&self.nodes[parent as usize].token));
        // A node survives no more often than its parent, whatever was claimed of the parent before.
        let most = self.survival(parent.map_or(Place::Output, Place::Node));
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

    fn survival(&self, place: Place) -> f32 {
        match place {
            Place::Node(node) => self.nodes[node as usize].claim.survival,
            Place::Output | Place::Nowhere => 1.0,
        }
    }
}
