//! A cache together with the tokens it holds.

use speculation::{TokenId, ports::KvCache};

/// A sequence's keys and values, and which tokens they belong to.
///
/// After a partial acceptance the cache still holds the rejected drafts, so what is kept is decided
/// by comparing tokens, never lengths.
#[derive(Clone, Debug)]
pub struct CachedSequence<C> {
    cache: C,
    /// The nodes of a tree last, if it ends in one.
    tokens: Vec<TokenId>,
    /// Parents of that tree's nodes; see [`Segment::parents`](speculation::ports::Segment::parents).
    parents: Vec<Option<u32>>,
    /// Tokens from the first on that were held before the cache was made to forget them, and must be
    /// forwarded again.
    lost: usize,
    /// What the cache's encoder read; empty of a model without one.
    source: Vec<TokenId>,
}

impl<C: KvCache> CachedSequence<C> {
    /// Goes on from `cache`, which holds `tokens`, in place of one that held `lost`.
    pub fn new(cache: C, tokens: &[TokenId], lost: usize) -> Self {
        debug_assert_eq!(cache.len(), tokens.len());
        Self {
            cache,
            tokens: tokens.to_vec(),
            parents: Vec::new(),
            lost,
            source: Vec::new(),
        }
    }

    /// The cache.
    pub fn cache(&self) -> &C {
        &self.cache
    }

    /// Tokens that the cache held once and must be told again.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// Gives the cache's memory back. Its tokens will be forwarded again.
    pub fn forget(&mut self) {
        self.lost = self.lost.max(self.tokens.len());
        self.cache.truncate(0);
        self.tokens.clear();
        self.parents.clear();
    }

    /// The tokens held; those of a tree as they were forwarded.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The source that the tokens are written from; empty if none was encoded.
    pub fn source(&self) -> &[TokenId] {
        &self.source
    }

    /// Records that `source` was encoded, whereupon the cache forgot its tokens.
    pub fn encoded(&mut self, source: &[TokenId]) {
        source.clone_into(&mut self.source);
        self.tokens.clear();
        self.parents.clear();
        debug_assert!(self.cache.is_empty());
    }

    /// Keeps what is held of `tokens`, the last of which form the tree `parents`, and of their first `limit` at most:
    /// positions that are to be scored must be forwarded, though the cache holds them. Of a tree that is held the path
    /// stays that `tokens` went, and, where a tree `grows`, the nodes after it that they still want. Returns how many
    /// tokens are kept, fewer still if the cache cannot go on from there; `tokens` from there on must be forwarded.
    pub fn reconcile(
        &mut self,
        tokens: &[TokenId],
        parents: &[Option<u32>],
        limit: usize,
        grows: bool,
    ) -> usize {
        let root = self.tokens.len() - self.parents.len();
        let trunk = &tokens[..(tokens.len() - parents.len()).min(limit)];
        let shared = in_common(&self.tokens[..root], trunk);
        let wanted = if shared < root || self.parents.is_empty() {
            self.cache.truncate(shared);
            self.parents.clear();
            shared
        } else {
            let mut path = self.path(&trunk[root..]);
            let is_whole = root + path.len() + parents.len() == tokens.len();
            let wanted = if is_whole && grows {
                let nodes = limit.saturating_sub(root + path.len()).min(parents.len());
                self.nodes(&path, &tokens[root + path.len()..][..nodes], parents)
            } else {
                Vec::new()
            };
            self.cache.keep(root, &path, &wanted);
            self.parents.clear();
            if !wanted.is_empty() {
                self.parents.extend_from_slice(&parents[..wanted.len()]);
            }
            path.extend(wanted);
            for (to, &node) in (root..).zip(&path) {
                self.tokens[to] = self.tokens[root + node as usize];
            }
            root + path.len()
        };
        let kept = self.cache.len();
        if kept < wanted {
            self.lost = self.lost.max(wanted);
            self.parents
                .truncate(self.parents.len().saturating_sub(wanted - kept));
        }
        self.tokens.truncate(kept);
        kept
    }

    /// Returns the path of the held tree that `tokens` go, as far as they go one.
    fn path(&self, tokens: &[TokenId]) -> Vec<u32> {
        let mut path = Vec::new();
        for &token in tokens {
            match self.child(path.last().copied(), token) {
                Some(node) => path.push(node),
                None => break,
            }
        }
        path
    }

    /// Returns the nodes of the held tree that `tokens` are: a tree of these `parents` after the held nodes `path`. They
    /// are the first that are held, in the order held.
    fn nodes(&self, path: &[u32], tokens: &[TokenId], parents: &[Option<u32>]) -> Vec<u32> {
        let mut nodes: Vec<u32> = Vec::new();
        for (&token, parent) in tokens.iter().zip(parents) {
            let parent = match parent {
                Some(parent) => nodes.get(*parent as usize),
                None => path.last(),
            };
            let node = self.child(parent.copied(), token);
            match node.filter(|node| nodes.last() < Some(node)) {
                Some(node) => nodes.push(node),
                None => break,
            }
        }
        nodes
    }

    /// Returns the node of the held tree that holds `token` after `node` (none: after the tokens before the tree).
    fn child(&self, node: Option<u32>, token: TokenId) -> Option<u32> {
        let root = self.tokens.len() - self.parents.len();
        let first = node.map_or(0, |node| node as usize + 1);
        let mut later = first..self.parents.len();
        let found = later.find(|&at| self.parents[at] == node && self.tokens[root + at] == token);
        found.map(|found| found as u32)
    }

    /// The cache, to be extended by a forward; [`CachedSequence::extend`] must follow.
    pub fn cache_mut(&mut self) -> &mut C {
        &mut self.cache
    }

    /// Records that `tokens` were forwarded, after which the sequence ends in a tree of these `parents`; of none, if it
    /// ends in no tree. Returns how many of the tokens had been forwarded before, and were lost.
    pub fn extend(&mut self, tokens: &[TokenId], parents: &[Option<u32>]) -> usize {
        let from = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        parents.clone_into(&mut self.parents);
        debug_assert_eq!(self.tokens.len(), self.cache.len());
        let again = self.lost.min(self.tokens.len()).saturating_sub(from);
        if self.lost <= self.tokens.len() {
            self.lost = 0;
        }
        again
    }
}

/// Returns how many tokens two sequences begin with alike.
pub(crate) fn in_common(one: &[TokenId], other: &[TokenId]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests;
