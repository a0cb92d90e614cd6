//! A cache together with the tokens it holds.

use speculation::{TokenId, ports::KvCache};

/// A sequence's keys and values, and which tokens they belong to.
///
/// After a partial acceptance the cache still holds the rejected drafts, so what is kept is decided
/// by comparing tokens, never lengths.
#[derive(Clone, Debug)]
pub struct CachedSequence<C> {
    cache: C,
    tokens: Vec<TokenId>,
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
    }

    /// The tokens held.
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
        debug_assert!(self.cache.is_empty());
    }

    /// Truncates to the longest prefix shared with `tokens`, and to `limit` at most: positions that
    /// are to be scored must be forwarded, though the cache holds them. Returns how many tokens are
    /// kept, fewer still if the cache cannot go on from there; `tokens` from there on must be forwarded.
    pub fn reconcile(&mut self, tokens: &[TokenId], limit: usize) -> usize {
        let shared = self
            .tokens
            .iter()
            .zip(tokens)
            .take_while(|(a, b)| a == b)
            .count();
        let wanted = shared.min(limit);
        self.cache.truncate(wanted);
        let kept = self.cache.len();
        if kept < wanted {
            self.lost = self.lost.max(wanted);
        }
        self.tokens.truncate(kept);
        kept
    }

    /// The cache, to be extended by a forward; [`CachedSequence::extend`] must follow.
    pub fn cache_mut(&mut self) -> &mut C {
        &mut self.cache
    }

    /// Records that `tokens` were forwarded. If they end in a tree, [`CachedSequence::keep`] must follow:
    /// nodes side by side are no sequence that tokens could be compared with. Returns how many of them had
    /// been forwarded before, and were lost.
    pub fn extend(&mut self, tokens: &[TokenId]) -> usize {
        let from = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        debug_assert_eq!(self.tokens.len(), self.cache.len());
        let again = self.lost.min(self.tokens.len()).saturating_sub(from);
        if self.lost <= self.tokens.len() {
            self.lost = 0;
        }
        again
    }

    /// Keeps, of the tree from token `from` on, the nodes of `path`; see [`KvCache::keep`].
    pub fn keep(&mut self, from: usize, path: &[u32]) {
        self.cache.keep(from, path);
        for (to, &node) in (from..).zip(path) {
            self.tokens[to] = self.tokens[from + node as usize];
        }
        // A cache that cannot move its tokens has forgotten them.
        self.tokens.truncate(self.cache.len());
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
        let kept = sequence.reconcile(tokens, limit);
        sequence.cache_mut().0.extend_from_slice(&tokens[kept..]);
        sequence.extend(&tokens[kept..]);
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

    #[test]
    fn a_path_stays_where_the_cache_can_move_it() {
        let mut sequence = CachedSequence::new(ToyCache::default(), &[], 0);
        let mut model = ToyModel::new(1, 10);
        let mut forward = |sequence: &mut CachedSequence<ToyCache>, tokens: &[TokenId]| {
            let parents = [None, None, Some(0), Some(1)];
            let segment = Segment {
                cache: sequence.cache_mut(),
                tokens,
                parents: &parents,
                scored_from: 0,
            };
            model.forward(&mut [segment], &mut Rows::default()).unwrap();
            sequence.extend(tokens);
        };
        forward(&mut sequence, &[1, 2, 3, 4, 5, 6]);
        sequence.keep(2, &[1, 3]);
        assert_eq!(sequence.tokens(), [1, 2, 4, 6]);
        assert_eq!(sequence.cache.len(), 4);
        forward(&mut sequence, &[7, 8, 9, 3]);
        sequence.keep(4, &[]);
        assert_eq!(sequence.tokens(), [1, 2, 4, 6]);

        // This cache cannot.
        let mut sequence = CachedSequence::new(Toy(Vec::new()), &[], 0);
        sequence.cache_mut().0.extend([1, 2, 3, 4]);
        sequence.extend(&[1, 2, 3, 4]);
        sequence.keep(2, &[1]);
        assert_eq!((sequence.tokens(), sequence.cache.len()), (&[1, 2][..], 2));
    }
}
