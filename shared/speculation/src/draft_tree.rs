//! Draft tokens as a tree in topological order.

use crate::TokenId;

/// Draft tokens of one round: a chain, or a tree in topological order, whose siblings are distinct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftTree {
    tokens: Vec<TokenId>,
    /// Index of each node's parent, none for a child of the root; empty for a chain.
    parents: Vec<Option<u32>>,
}

/// Parents that make no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTree {
    /// Not one parent for each token.
    #[error("{parents} parents for {tokens} tokens")]
    Length {
        /// Parents found.
        parents: usize,
        /// Tokens found.
        tokens: usize,
    },
    /// A node stands before its parent.
    #[error("node {0} stands before its parent")]
    Order(usize),
    /// Two children of one node hold the same token.
    #[error("node {0} repeats the token of a sibling")]
    Siblings(usize),
}

/// Returns where each node stands once the output has gone on to the node `chosen`, which was a child of the root: only what is
/// beneath it stays, in its order. `parents` are those of the nodes, parents before children; a node whose parent has no
/// place any more, as `chosen` itself has none, is a child of the root.
pub(crate) fn beneath(
    parents: impl Iterator<Item = Option<u32>>,
    chosen: usize,
) -> Vec<Option<u32>> {
    let mut moved: Vec<Option<u32>> = Vec::new();
    let mut kept = 0;
    for parent in parents {
        let stays = parent
            .is_some_and(|parent| parent as usize == chosen || moved[parent as usize].is_some());
        moved.push(stays.then_some(kept));
        kept += u32::from(stays);
    }
    moved
}

impl DraftTree {
    /// The tree of `tokens` with these parents; none of them is a chain.
    ///
    /// # Errors
    /// [`BadTree`] if they make no tree in topological order with distinct siblings.
    pub fn new(tokens: Vec<TokenId>, parents: Vec<Option<u32>>) -> Result<Self, BadTree> {
        if parents.is_empty() {
            return Ok(tokens.into());
        }
        if parents.len() != tokens.len() {
            return Err(BadTree::Length {
                parents: parents.len(),
                tokens: tokens.len(),
            });
        }
        for (node, &parent) in parents.iter().enumerate() {
            if parent.is_some_and(|parent| parent as usize >= node) {
                return Err(BadTree::Order(node));
            }
        }
        if let Some(node) = repeated(&tokens, &parents) {
            return Err(BadTree::Siblings(node));
        }
        let is_chain =
            (parents.iter().zip(0_u32..)).all(|(parent, node)| *parent == node.checked_sub(1));
        Ok(Self {
            tokens,
            parents: if is_chain { Vec::new() } else { parents },
        })
    }

    /// The nodes' tokens, parents before children.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Index of each node's parent, none for a child of the root; empty for a chain.
    pub fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    /// Whether each node is the only child of the one before.
    pub fn is_chain(&self) -> bool {
        self.parents.is_empty()
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The parent of `node`; none for a child of the root.
    pub fn parent(&self, node: usize) -> Option<usize> {
        match self.parents.get(node) {
            Some(parent) => parent.map(|parent| parent as usize),
            None => node.checked_sub(1),
        }
    }

    /// How deep each node stands: 0 for a child of the root. The token of a node at depth d stands at
    /// output position `base_len + d`.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.len());
        for node in 0..self.len() {
            depths.push(self.parent(node).map_or(0, |parent| depths[parent] + 1));
        }
        depths
    }

    /// Number of levels: tokens of the longest path.
    pub fn levels(&self) -> u32 {
        if self.is_chain() {
            return self.len() as u32;
        }
        self.depths()
            .into_iter()
            .max()
            .map_or(0, |deepest| deepest + 1)
    }

    /// The children of `node` (none: the root), in their order.
    pub fn children(&self, node: Option<usize>) -> impl Iterator<Item = usize> {
        let first = node.map_or(0, |node| node + 1);
        (first..self.len()).filter(move |&child| self.parent(child) == node)
    }

    /// The child of `node` (none: the root) that holds `token`.
    pub fn child(&self, node: Option<usize>, token: TokenId) -> Option<usize> {
        self.children(node)
            .find(|&child| self.tokens[child] == token)
    }

    /// The nodes that have children (none: the root), in the order of their first ones: for each group of siblings
    /// the node that they follow. On a chain that is one for each token.
    pub fn inner(&self) -> Vec<Option<usize>> {
        let mut inner = Vec::new();
        for node in 0..self.len() {
            let parent = self.parent(node);
            if inner.last() != Some(&parent) && !inner.contains(&parent) {
                inner.push(parent);
            }
        }
        inner
    }

    /// Whether `node` has no child.
    pub fn is_leaf(&self, node: usize) -> bool {
        !(node + 1..self.len()).any(|child| self.parent(child) == Some(node))
    }
}

/// The first node that holds the token of a sibling before it.
fn repeated(tokens: &[TokenId], parents: &[Option<u32>]) -> Option<usize> {
    let mut nodes: Vec<_> = parents.iter().zip(tokens).zip(0..tokens.len()).collect();
    nodes.sort_unstable();
    let pairs = nodes.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    pairs.map(|pair| pair[1].1).min()
}

impl From<Vec<TokenId>> for DraftTree {
    fn from(tokens: Vec<TokenId>) -> Self {
        Self {
            tokens,
            parents: Vec::new(),
        }
    }
}

impl From<&[TokenId]> for DraftTree {
    fn from(tokens: &[TokenId]) -> Self {
        tokens.to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trees_are_trees() {
        let tree = |parents: &[Option<u32>]| DraftTree::new(vec![5, 6, 7, 7], parents.to_vec());
        let chain = tree(&[None, Some(0), Some(1), Some(2)]);
        assert_eq!(chain, Ok(vec![5, 6, 7, 7].into()));
        let comb = tree(&[None, None, Some(0), Some(1)]).expect("a tree");
        let children = [(None, 6), (Some(1), 7), (Some(0), 6)];
        let children = children.map(|(node, token)| comb.child(node, token));
        assert_eq!(children, [Some(1), Some(3), None]);
        assert_eq!([comb.is_leaf(0), comb.is_leaf(3)], [false, true]);
        assert_eq!(comb.inner(), [None, Some(0), Some(1)]);
        assert_eq!(comb.children(None).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((comb.depths(), comb.levels()), (vec![0, 0, 1, 1], 2));
        let chain = DraftTree::from(vec![1, 2, 3]);
        assert_eq!((chain.depths(), chain.levels()), (vec![0, 1, 2], 3));
        assert_eq!(chain.inner(), [None, Some(0), Some(1)]);
        assert_eq!(DraftTree::default().levels(), 0);
        assert_eq!(tree(&[None, Some(1), None, None]), Err(BadTree::Order(1)));
        assert_eq!(tree(&[None, None, None, None]), Err(BadTree::Siblings(3)));
        assert!(matches!(tree(&[None]), Err(BadTree::Length { .. })));
    }
}
