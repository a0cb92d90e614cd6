//! One sequence, and the leaves of a tree at its end.

use llama_cpp::{Context, SequenceId};
use speculation::{ports::KvCache, tree_paths::TreePaths};

use super::SharedContext;

/// State of one sequence of a [`LlamaModel`](super::LlamaModel).
#[derive(Debug)]
pub struct LlamaCache {
    pub(super) context: SharedContext,
    /// The sequence; none as long as no token is held.
    pub(super) sequence: Option<SequenceId>,
    /// Tokens before the tree.
    pub(super) trunk: usize,
    /// The tree that the last forward ended in.
    pub(super) tree: Option<HeldTree>,
}

/// A tree of which no path was kept.
#[derive(Debug)]
pub(super) struct HeldTree {
    pub(super) paths: TreePaths,
    /// Each leaf's node, and the sequence of its path. Empty where there were too few for them to be kept.
    pub(super) leaves: Vec<(usize, SequenceId)>,
    /// Nodes that have not been truncated away.
    pub(super) len: usize,
}

impl LlamaCache {
    pub(super) fn new(context: &SharedContext) -> Self {
        Self {
            context: context.clone(),
            sequence: None,
            trunk: 0,
            tree: None,
        }
    }

    /// Gives the sequences of the tree's leaves back.
    pub(super) fn drop_tree(&mut self, context: &mut Context) {
        let tree = self.tree.take();
        for (_, leaf) in tree.into_iter().flat_map(|tree| tree.leaves) {
            context.give_back(leaf);
        }
    }

    /// Forgets the tokens of the trunk from `len` on; there is no tree.
    pub(super) fn cut(&mut self, context: &mut Context, len: usize) {
        self.trunk = self.trunk.min(len);
        let Some(sequence) = self.sequence else {
            return;
        };
        if self.trunk > 0 && context.truncate(sequence, self.trunk) {
            return;
        }
        self.trunk = 0;
        self.sequence = None;
        context.give_back(sequence);
    }
}

impl KvCache for LlamaCache {
    fn len(&self) -> usize {
        self.trunk + self.tree.as_ref().map_or(0, |tree| tree.len)
    }

    fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        match &mut self.tree {
            Some(tree) if len > self.trunk => tree.len = len - self.trunk,
            _ => {
                let shared = self.context.clone();
                let context = &mut *shared.lock();
                self.drop_tree(context);
                self.cut(context, len);
            }
        }
    }

    fn keep(&mut self, from: usize, path: &[u32], _rest: &[u32]) {
        let shared = self.context.clone();
        let context = &mut *shared.lock();
        let Some(tree) = &self.tree else {
            // A chain is a tree without branches: what is kept of it is its beginning.
            let straight = path
                .iter()
                .zip(0..)
                .take_while(|(node, index)| **node == *index);
            let len = from + straight.count();
            self.cut(context, len);
            return;
        };
        let is_kept = |leaf: &&(usize, SequenceId)| tree.paths.path(leaf.0).starts_with(path);
        let leaf = tree.leaves.iter().find(is_kept).map(|(_, leaf)| *leaf);
        if from == self.trunk
            && let Some((leaf, own)) = leaf.zip(self.sequence)
            && context.copy(leaf, own, from + path.len()).is_ok()
        {
            self.trunk = from + path.len();
            self.drop_tree(context);
        } else {
            self.drop_tree(context);
            self.cut(context, from);
        }
    }

    fn pages(&self) -> usize {
        self.trunk + self.tree.as_ref().map_or(0, |tree| tree.paths.len())
    }

    fn pages_for(&self, more: usize, _at_once: usize) -> usize {
        more
    }

    fn share(&self, len: usize) -> Option<Self> {
        let len = len.min(self.trunk);
        let own = self.sequence.filter(|_| len > 0)?;
        let mut context = self.context.lock();
        let sequence = context.take()?;
        if context.copy(own, sequence, len).is_err() {
            context.give_back(sequence);
            return None;
        }
        drop(context);
        let mut shared = Self::new(&self.context);
        (shared.sequence, shared.trunk) = (Some(sequence), len);
        Some(shared)
    }
}

impl Drop for LlamaCache {
    fn drop(&mut self) {
        let shared = self.context.clone();
        let context = &mut *shared.lock();
        self.drop_tree(context);
        self.cut(context, 0);
    }
}
