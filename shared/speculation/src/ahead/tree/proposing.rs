//! Tells a tree as proposals.

use super::AheadTree;
use crate::draft_tree::DraftTree;
use crate::pending::{Claim, MOST_PROPOSED, ProposedTree};

impl AheadTree {
    /// Returns the nodes that were not proposed yet as a proposal after `after` output tokens: with what stands between them
    /// and the deepest node that all of them follow. None if there are none.
    pub fn propose(&mut self, after: u32) -> Option<ProposedTree> {
        // What stands between takes room, too.
        let new = self.told..self.nodes.len().min(self.told + MOST_PROPOSED / 2);
        let mut between = vec![false; self.nodes.len()];
        let mut root = self.nodes.get(new.start)?.parent;
        for at in new.clone() {
            between[at] = true;
            root = self.common(root, self.nodes[at].parent);
        }
        for at in (0..new.end).rev() {
            if let Some(parent) = self.nodes[at].parent.filter(|_| between[at]) {
                between[parent as usize] = true;
            }
        }
        // The root and what stands above it are the path.
        let mut above = root;
        while let Some(at) = above {
            between[at as usize] = false;
            above = self.nodes[at as usize].parent;
        }
        let base = root.map_or(1.0, |root| self.nodes[root as usize].survival);
        let mut moved = vec![None; self.nodes.len()];
        let (mut tokens, mut parents, mut claims) = (Vec::new(), Vec::new(), Vec::new());
        for (at, node) in self.nodes.iter().enumerate().take(new.end) {
            if !between[at] {
                continue;
            }
            if tokens.len() == MOST_PROPOSED {
                break;
            }
            self.told = self.told.max(at + 1);
            moved[at] = Some(tokens.len() as u32);
            tokens.push(node.token);
            parents.push(node.parent.and_then(|parent| moved[parent as usize]));
            claims.push(Claim {
                source: 0,
                survival: (node.survival / base).min(1.0),
            });
        }
        Some(ProposedTree {
            after,
            path: self.path(root),
            // Parents stand before children and siblings differ, so it is one.
            tree: DraftTree::new(tokens, parents).unwrap_or_default(),
            claims,
        })
    }

    /// Returns the deepest node that stands on the way to both.
    fn common(&self, one: Option<u32>, other: Option<u32>) -> Option<u32> {
        let (mut one, mut other) = (one?, other?);
        while one != other {
            // Parents stand before children.
            let later = if one > other { &mut one } else { &mut other };
            *later = self.nodes[*later as usize].parent?;
        }
        Some(one)
    }
}
