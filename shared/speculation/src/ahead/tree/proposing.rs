//! Tells a tree as proposals.

use super::AheadTree;
use crate::pending::{Claim, MOST_PROPOSED, Parent, PathDigest, ProposedNode, ProposedTree};

impl AheadTree {
    /// Returns how many nodes stand before the first of those not proposed yet on its path, the least of all; none if all were
    /// proposed.
    pub fn nearest_untold(&self) -> Option<u32> {
        self.nodes[self.told..].iter().map(|node| node.depth).min()
    }

    /// Returns nodes that were not proposed yet as a proposal after `after` output tokens; its roots are those that were. None
    /// if there are none.
    pub fn propose(&mut self, after: u32) -> Option<ProposedTree> {
        let told = self.told;
        let end = self.nodes.len().min(told + MOST_PROPOSED);
        self.told = end;
        // The node that each root is, if it is not the output's end, and of each new node the number of its root.
        let mut roots: Vec<Option<u32>> = Vec::new();
        let mut root_of: Vec<usize> = Vec::new();
        let mut proposed = ProposedTree {
            after,
            ..ProposedTree::default()
        };
        for node in self.nodes.get(told..end)? {
            let above = node.parent.and_then(|at| (at as usize).checked_sub(told));
            let (parent, root) = if let Some(above) = above {
                (Parent::Node(above as u32), root_of[above])
            } else {
                let found = roots.iter().position(|&root| root == node.parent);
                let root = found.unwrap_or_else(|| {
                    roots.push(node.parent);
                    let digest = PathDigest::of(&self.path(node.parent));
                    proposed.roots.push(digest);
                    roots.len() - 1
                });
                (Parent::Root(root as u32), root)
            };
            root_of.push(root);
            let base = roots[root].map_or(1.0, |at| self.nodes[at as usize].survival);
            proposed.nodes.push(ProposedNode {
                token: node.token,
                parent,
                claim: Claim {
                    source: 0,
                    survival: (node.survival / base).min(1.0),
                },
            });
        }
        (!proposed.nodes.is_empty()).then_some(proposed)
    }
}
