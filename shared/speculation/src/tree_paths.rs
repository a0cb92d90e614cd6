//! The path to each node of a token tree, for whoever computes a tree.

use crate::draft_tree::BadTree;

/// For each node of a tree in topological order the nodes on the way to it, from a child of the root
/// down to the node itself. No node at all is a chain, of which nothing need be said.
#[derive(Clone, Debug, Default)]
pub struct TreePaths {
    /// The paths, one after the other.
    nodes: Vec<u32>,
    /// Where each path ends in `nodes`.
    ends: Vec<usize>,
    depth: usize,
}

impl TreePaths {
    /// The tree that the last of `tokens` tokens form, `parents` as in
    /// [`Segment::parents`](crate::ports::Segment::parents). Reuses the buffers of the tree before.
    ///
    /// # Errors
    /// [`BadTree::Length`] with more parents than tokens, [`BadTree::Order`] if a node does not stand
    /// after its parent. Then no tree is held.
    pub fn read(&mut self, parents: &[Option<u32>], tokens: usize) -> Result<(), BadTree> {
        self.nodes.clear();
        self.ends.clear();
        self.depth = 0;
        if parents.len() > tokens {
            return Err(BadTree::Length {
                parents: parents.len(),
                tokens,
            });
        }
        let misplaced = |(node, parent): (usize, &Option<u32>)| {
            parent
                .is_some_and(|parent| parent as usize >= node)
                .then_some(node)
        };
        if let Some(node) = parents.iter().enumerate().find_map(misplaced) {
            return Err(BadTree::Order(node));
        }
        for (node, parent) in parents.iter().enumerate() {
            let start = self.nodes.len();
            if let Some(parent) = parent {
                self.nodes.extend_from_within(self.range(*parent as usize));
            }
            self.nodes.push(node as u32);
            self.ends.push(self.nodes.len());
            self.depth = self.depth.max(self.nodes.len() - start);
        }
        Ok(())
    }

    /// The nodes on the way to `node`, itself the last; their number is its depth.
    pub fn path(&self, node: usize) -> &[u32] {
        &self.nodes[self.range(node)]
    }

    /// Number of nodes; 0 for a chain.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no tree.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Length of the longest path.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether `nodes` is the path to one of the nodes.
    pub fn holds(&self, nodes: &[u32]) -> bool {
        nodes
            .last()
            .is_some_and(|&last| (last as usize) < self.len() && self.path(last as usize) == nodes)
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[node]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_runs_from_the_root_to_its_node() {
        let mut tree = TreePaths::default();
        // Two trees below the root, in no tidy order.
        tree.read(&[None, None, Some(0), Some(1), Some(2), Some(0)], 9)
            .unwrap();
        let paths: Vec<_> = (0..tree.len()).map(|node| tree.path(node)).collect();
        let expected = [&[0][..], &[1], &[0, 2], &[1, 3], &[0, 2, 4], &[0, 5]];
        assert_eq!(paths, expected);
        assert_eq!(tree.depth(), 3);
        assert!(tree.holds(&[0, 2, 4]) && tree.holds(&[1]));
        for wrong in [&[][..], &[2], &[1, 2], &[0, 1], &[6], &[0, 2, 5]] {
            assert!(!tree.holds(wrong), "{wrong:?}");
        }
        tree.read(&[], 9).unwrap();
        assert!(tree.is_empty() && tree.depth() == 0 && !tree.holds(&[0]));
    }

    #[test]
    fn parents_that_make_no_tree_are_refused() {
        let mut tree = TreePaths::default();
        tree.read(&[None; 3], 3).unwrap();
        let (parents, tokens) = (4, 3);
        let too_many = BadTree::Length { parents, tokens };
        assert_eq!(tree.read(&[None; 4], 3), Err(too_many));
        assert_eq!(tree.read(&[None, Some(1)], 3), Err(BadTree::Order(1)));
        assert_eq!(tree.read(&[Some(7), None], 3), Err(BadTree::Order(0)));
        assert!(tree.is_empty());
    }
}
