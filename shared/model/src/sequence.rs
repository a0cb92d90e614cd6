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
        let pairs = self.tokens[..root].iter().zip(trunk);
        let shared = pairs.take_while(|(held, wanted)| held == wanted).count();
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

#[cfg(test)]
mod tests {
    use outrider_tests::toy::{ToyCache, ToyModel};
    use speculation::ports::{LanguageModel, Rows, Segment};

    use super::*;

    /// A cache that knows its tokens, to be compared with what the sequence believes.
    #[derive(Default)]
    struct Toy(Vec<TokenId>);

    impl KvCache for Toy {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn truncate(&mut self, len: usize) {
            self.0.truncate(len);
        }
    }

    fn forward(sequence: &mut CachedSequence<Toy>, tokens: &[TokenId], limit: usize) -> usize {
        let kept = sequence.reconcile(tokens, &[], limit, true);
        sequence.cache_mut().0.extend_from_slice(&tokens[kept..]);
        sequence.extend(&tokens[kept..], &[]);
        assert_eq!(sequence.cache.0, tokens);
        assert_eq!(sequence.tokens(), tokens);
        kept
    }

    #[test]
    fn what_is_kept_goes_by_tokens_and_by_what_is_to_be_scored() {
        let mut sequence = CachedSequence::new(Toy::default(), &[], 0);
        for (tokens, limit, kept) in [
            (&[1, 2, 3, 4, 5][..], 2, 0),
            // 4 was accepted and 5 rejected; the recovered token and a new draft take its place.
            (&[1, 2, 3, 4, 8], 3, 3),
            (&[1, 2, 3, 4, 9, 5], 5, 4),
            // Scored positions are forwarded again.
            (&[1, 2, 3, 4, 9, 5], 2, 2),
            (&[1, 2, 3], 0, 0),
            // Another prompt.
            (&[7, 2, 3], 2, 0),
            (&[7], 0, 0),
        ] {
            assert_eq!(forward(&mut sequence, tokens, limit), kept, "{tokens:?}");
        }
    }

    /// 1, 2 and after them 3 and 4; 5 after 3, 6 and 7 after 4.
    const TREE: ([TokenId; 7], [Option<u32>; 5]) = (
        [1, 2, 3, 4, 5, 6, 7],
        [None, None, Some(0), Some(1), Some(1)],
    );

    /// A sequence of a model's that ends in [`TREE`].
    fn in_a_tree() -> CachedSequence<ToyCache> {
        let mut sequence = CachedSequence::new(ToyCache::default(), &[], 0);
        let (tokens, parents) = TREE;
        let segment = Segment {
            cache: sequence.cache_mut(),
            tokens: &tokens,
            parents: &parents,
            scored_from: 0,
        };
        let mut model = ToyModel::new(1, 10);
        model.forward(&mut [segment], &mut Rows::default()).unwrap();
        sequence.extend(&tokens, &parents);
        sequence
    }

    #[test]
    fn of_a_tree_stays_the_path_that_was_taken_and_what_is_wanted_beneath() {
        let none: &[Option<u32>] = &[];
        for (tokens, parents, limit, kept) in [
            (&[1, 2, 4, 7, 9][..], none, 4, &[1, 2, 4, 7][..]),
            // The last tokens are to be scored.
            (&[1, 2, 4, 7, 9], none, 3, &[1, 2, 4]),
            (&[1, 2, 4, 7, 9], none, 1, &[1]),
            // No path: side by side, beneath another, not there.
            (&[1, 2, 3, 4, 5], none, 4, &[1, 2, 3]),
            (&[1, 2, 5, 9], none, 3, &[1, 2]),
            (&[1, 3, 9], none, 2, &[1]),
            // A tree that is the same, grows, is a part, begins further down.
            (&TREE.0, &TREE.1, 7, &TREE.0),
            (
                &[1, 2, 4, 6, 8],
                &[None, Some(0), Some(1)],
                4,
                &[1, 2, 4, 6],
            ),
            (
                &[1, 2, 4, 6, 7, 8],
                &[None, None, Some(0)],
                5,
                &[1, 2, 4, 6, 7],
            ),
            (&[1, 2, 4, 7, 8], &[None, Some(0)], 4, &[1, 2, 4, 7]),
            // In another order, with another node first, with rows from the middle on.
            (&[1, 2, 4, 7, 6, 8], &[None, None, None], 5, &[1, 2, 4, 7]),
            (&[1, 2, 4, 8, 6], &[None, None], 5, &[1, 2, 4]),
            (
                &[1, 2, 4, 6, 7, 8],
                &[None, None, Some(0)],
                4,
                &[1, 2, 4, 6],
            ),
        ] {
            let mut sequence = in_a_tree();
            let found = sequence.reconcile(tokens, parents, limit, true);
            assert_eq!((found, sequence.tokens()), (kept.len(), kept), "{tokens:?}");
            assert_eq!(sequence.cache.len(), kept.len(), "{tokens:?}");
            let trunk = tokens.len() - parents.len();
            let held = &parents[..kept.len().saturating_sub(trunk)];
            assert_eq!(sequence.parents, held, "{tokens:?}");
        }
    }

    #[test]
    fn where_trees_do_not_grow_the_path_alone_stays() {
        let mut sequence = in_a_tree();
        let parents = [None, None, Some(0)];
        let kept = sequence.reconcile(&[1, 2, 4, 6, 7, 8], &parents, 5, false);
        assert_eq!((kept, sequence.tokens()), (3, &[1, 2, 4][..]));
        assert!(sequence.parents.is_empty());
    }

    /// Such a cache forgets a tree whole.
    #[test]
    fn what_the_cache_cannot_move_is_forwarded_again() {
        let mut sequence = CachedSequence::new(Toy(vec![1, 2]), &[1, 2], 0);
        sequence.cache.0.extend([3, 4]);
        sequence.extend(&[3, 4], &[None, None]);
        assert_eq!(sequence.reconcile(&[1, 2, 4, 5], &[], 3, true), 2);
        assert_eq!((sequence.tokens(), sequence.lost()), (&[1, 2][..], 3));
    }
}
