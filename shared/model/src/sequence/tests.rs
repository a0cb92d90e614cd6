//! What is kept of a sequence, by its tokens and its tree.

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
