//! What of a proposal fits, what falls off, and what a forward is offered.

use super::*;

const BOUNDS: Bounds<'static> = Bounds {
    levels: 8,
    vocab_size: 100,
    ends: &[99],
};

fn proposed(after: u32, path: &[TokenId], nodes: &[(TokenId, Option<u32>, f32)]) -> ProposedTree {
    let nodes = nodes.iter().map(|&(token, parent, survival)| {
        let source = 0;
        (token, parent, Claim { source, survival })
    });
    ProposedTree::new(after, path, nodes)
}

fn chain(after: u32, tokens: &[TokenId], share: f32) -> ProposedTree {
    let nodes: Vec<_> = (0..tokens.len() as u32)
        .map(|at| {
            (
                tokens[at as usize],
                at.checked_sub(1),
                share.powi(at as i32 + 1),
            )
        })
        .collect();
    proposed(after, &[], &nodes)
}

/// The pending paths with what is claimed of their last nodes.
fn paths(pending: &PendingTree) -> Vec<(Vec<TokenId>, f32)> {
    let mut paths: Vec<(Vec<TokenId>, f32)> = Vec::new();
    for node in &pending.nodes {
        let mut path = node
            .parent
            .map_or(Vec::new(), |parent| paths[parent as usize].0.clone());
        path.push(node.token);
        assert_eq!(path.len() as u32, node.depth + 1);
        paths.push((path, node.claim.survival));
    }
    paths
}

fn tokens(pending: &PendingTree) -> Vec<Vec<TokenId>> {
    paths(pending).into_iter().map(|(path, _)| path).collect()
}

#[test]
fn a_proposal_fits_wherever_the_output_has_come_to_meanwhile() {
    // Five tokens were proposed after the first output token.
    let late = chain(1, &[2, 3, 4, 5, 6], 0.5);
    for (output, left) in [
        (&[1][..], 5),
        (&[1, 2], 4),
        (&[1, 2, 3, 4], 2),
        (&[1, 2, 3, 4, 5, 6], 0),
        (&[1, 2, 3, 4, 5, 6, 7], 0),
        (&[1, 2, 9], 0),
        (&[1, 9, 3], 0),
        // It is of an output that this one has not come to.
        (&[], 0),
    ] {
        let mut pending = PendingTree::default();
        let received = pending.receive(&late, output, BOUNDS);
        assert_eq!(
            (pending.len(), received.new),
            (left, left as u32),
            "{output:?}"
        );
        let all = received.new + received.stale;
        let emitted = output.len().saturating_sub(1).min(5);
        assert!(all as usize + emitted >= 5, "{output:?} {received:?}");
        // What is left is relative to what stands by now.
        if let Some((_, survival)) = paths(&pending).first() {
            assert!((survival - 0.5).abs() < 1e-6, "{output:?}: {survival}");
        }
    }
}

#[test]
fn a_proposal_may_grow_on_what_is_pending_and_falls_off_without_it() {
    let mut pending = PendingTree::default();
    pending.receive(&chain(0, &[1, 2], 0.5), &[], BOUNDS);
    let more = proposed(0, &[1, 2], &[(3, None, 0.5), (4, None, 0.25)]);
    assert_eq!(pending.receive(&more, &[], BOUNDS).new, 2);
    let expected = [
        (vec![1], 0.5),
        (vec![1, 2], 0.25),
        (vec![1, 2, 3], 0.125),
        (vec![1, 2, 4], 0.0625),
    ];
    assert_eq!(paths(&pending), expected);
    // The path has become output in part.
    let more = proposed(0, &[7, 1, 2], &[(5, None, 0.5)]);
    assert_eq!(pending.receive(&more, &[7], BOUNDS).new, 1);
    // So has all of it, with what was pending after it.
    let mut other = PendingTree::default();
    assert_eq!(other.receive(&more, &[7, 1], BOUNDS).stale, 1);
    assert_eq!(other.receive(&more, &[7, 1, 2], BOUNDS).new, 1);
    assert_eq!(other.receive(&more, &[7, 1, 2, 5], BOUNDS).new, 0);
    // Its path is pending nowhere.
    let orphan = proposed(0, &[1, 8], &[(5, None, 0.5)]);
    assert_eq!(pending.receive(&orphan, &[], BOUNDS).stale, 1);
}

#[test]
fn a_proposal_may_grow_on_several_nodes_at_once() {
    let mut pending = PendingTree::default();
    pending.receive(&chain(0, &[1, 2], 0.5), &[], BOUNDS);
    let node = |token, parent, survival| ProposedNode {
        token,
        parent,
        claim: Claim {
            source: 0,
            survival,
        },
    };
    let roots = [&[1][..], &[], &[1, 2], &[8]];
    let more = ProposedTree {
        after: 0,
        roots: roots.map(PathDigest::of).to_vec(),
        nodes: vec![
            node(2, Parent::Root(0), 0.1),
            node(3, Parent::Root(0), 0.5),
            node(4, Parent::Root(1), 0.25),
            node(5, Parent::Root(2), 0.5),
            node(6, Parent::Node(1), 0.25),
            // What is nowhere, and what follows none.
            node(7, Parent::Root(3), 0.5),
            node(7, Parent::Root(4), 0.5),
            node(7, Parent::Node(8), 0.5),
        ],
    };
    let received = pending.receive(&more, &[], BOUNDS);
    assert_eq!((received.new, received.stale), (4, 3));
    let expected = [
        (vec![1], 0.5),
        (vec![1, 2], 0.25),
        (vec![1, 3], 0.25),
        (vec![4], 0.25),
        (vec![1, 2, 5], 0.125),
        (vec![1, 3, 6], 0.125),
    ];
    assert_eq!(paths(&pending), expected);
    // The output holds some roots by now, others and their nodes are beside it.
    let mut late = PendingTree::default();
    let received = late.receive(&more, &[1, 3], BOUNDS);
    assert_eq!((received.new, received.stale), (1, 6));
    assert_eq!(paths(&late), [(vec![6], 0.5)]);
}

#[test]
fn what_comes_too_late_is_not_searched_for() {
    let proposed = chain(0, &[0; 3], 0.5);
    for (len, new) in [(MOST_BEHIND, 0), (0, 3)] {
        let mut pending = PendingTree::default();
        let received = pending.receive(&proposed, &vec![0; len], BOUNDS);
        assert_eq!((received.new, received.stale), (new, 0), "{len}");
    }
    let far = PendingTree::default().receive(&proposed, &[0; MOST_BEHIND + 1], BOUNDS);
    assert_eq!(far.stale, 3);
}

#[test]
fn what_is_proposed_twice_stands_once_with_the_larger_survival() {
    let mut pending = PendingTree::default();
    pending.receive(&chain(0, &[1, 2], 0.5), &[], BOUNDS);
    let mut again = chain(0, &[1, 2, 3], 0.8);
    (again.nodes.iter_mut()).for_each(|node| node.claim.source = 3);
    let received = pending.receive(&again, &[], BOUNDS);
    assert_eq!((received.new, pending.len()), (1, 3));
    let survivals: Vec<f32> = paths(&pending).into_iter().map(|(_, it)| it).collect();
    assert!((survivals[0] - 0.8).abs() < 1e-6 && (survivals[1] - 0.64).abs() < 1e-6);
    // It counts for the first.
    assert_eq!(pending.advance(1), (Some(0), 0));
    assert_eq!(pending.advance(2), (Some(0), 0));
    assert_eq!(pending.advance(3), (Some(3), 0));
    assert_eq!(pending.advance(4), (None, 0));
}

#[test]
fn the_output_decides_what_stays() {
    let mut pending = PendingTree::default();
    let branches = proposed(
        0,
        &[],
        &[
            (1, None, 0.6),
            (2, None, 0.3),
            (3, Some(0), 0.3),
            (4, Some(1), 0.3),
            (5, Some(2), 0.15),
        ],
    );
    pending.receive(&branches, &[], BOUNDS);
    let mut other = pending.clone();
    assert_eq!(pending.advance(1), (Some(0), 2));
    assert_eq!(paths(&pending), [(vec![3], 0.5), (vec![3, 5], 0.25)]);
    assert_eq!(other.advance(2), (Some(0), 3));
    assert_eq!(paths(&other), [(vec![4], 1.0)]);
    assert_eq!(other.advance(7), (None, 1));
    assert!(other.is_empty());
}

#[test]
fn what_could_never_be_emitted_is_not_kept() {
    let bounds = Bounds {
        levels: 2,
        ..BOUNDS
    };
    for (proposal, kept, malformed) in [
        (chain(0, &[1, 2, 3], 0.5), 2, 1),
        (chain(0, &[1, 100], 0.5), 1, 1),
        (chain(0, &[99, 1], 0.5), 1, 1),
        (
            proposed(0, &[], &[(1, None, f32::NAN), (2, None, 0.5)]),
            1,
            1,
        ),
        (proposed(0, &[], &[(1, None, 0.0)]), 0, 1),
        (proposed(0, &[], &[(1, None, 1.5)]), 0, 1),
        (proposed(0, &[], &[(1, None, 0.2), (2, Some(0), 0.3)]), 1, 1),
    ] {
        let mut pending = PendingTree::default();
        let received = pending.receive(&proposal, &[], bounds);
        assert_eq!(pending.len(), kept, "{proposal:?}");
        assert_eq!(received.malformed, malformed, "{proposal:?}");
    }
    let mut pending = PendingTree::default();
    let mut without_room = 0;
    for first in 0..90 {
        let deep = chain(0, &[first, 1, 2, 3, 4, 5, 6, 7], 0.5);
        without_room += pending.receive(&deep, &[], BOUNDS).without_room;
    }
    assert_eq!((pending.len(), pending.room()), (ROOM, 0));
    assert!(without_room > 0);
}

#[test]
fn the_first_nodes_offered_are_a_tree_however_many() {
    let mut pending = PendingTree::default();
    pending.receive(&chain(0, &[1, 2, 3, 4], 0.9), &[], BOUNDS);
    pending.receive(&chain(0, &[5, 6], 0.7), &[], BOUNDS);
    let mut beneath = proposed(0, &[1], &[(7, None, 1.0)]);
    beneath.nodes[0].claim.source = 1;
    pending.receive(&beneath, &[], BOUNDS);
    let mut trust = Trust::default();
    trust.observe(
        [(0, 1.0), (0, 1.0)]
            .map(|(source, survival)| (Claim { source, survival }, false))
            .into_iter(),
    );
    for trust in [Trust::default(), trust] {
        let ranked = pending.ranked(3, false, &trust);
        assert_eq!(ranked.len(), 6, "the fourth level is left out");
        assert!(ranked.is_sorted_by(|one, next| one.1 >= next.1));
        for count in 0..=ranked.len() {
            let (tree, claims) = pending.tree_of(&ranked[..count]);
            assert_eq!((tree.len(), claims.len()), (count, count));
            // Each path of it is pending.
            let held = tokens(&pending);
            let mut paths: Vec<Vec<TokenId>> = Vec::new();
            for node in 0..tree.len() {
                let mut path = tree.parent(node).map_or(Vec::new(), |at| paths[at].clone());
                path.push(tree.tokens()[node]);
                assert!(held.contains(&path), "{path:?}");
                paths.push(path);
            }
        }
        let chain = pending.ranked(3, true, &trust);
        let (tree, _) = pending.tree_of(&chain);
        assert!(tree.is_chain() && tree.tokens()[0] == 1, "{tree:?}");
    }
}

#[test]
fn what_was_pending_can_be_proposed_again() {
    let mut pending = PendingTree::default();
    pending.receive(&chain(0, &[1, 2, 3], 0.5), &[], BOUNDS);
    pending.receive(&chain(0, &[4, 5], 0.25), &[], BOUNDS);
    pending.advance(1);
    let again = pending.again(1);
    let mut other = PendingTree::default();
    other.receive(&again, &[1], BOUNDS);
    assert_eq!(paths(&other), paths(&pending));
}

/// One that claims certainty for noise is soon believed no more, and hardly asked again; one that is right is believed.
#[test]
fn claims_are_believed_as_far_as_they_came_true() {
    let mut trust = Trust::default();
    let claim = |source| Claim {
        source,
        survival: 1.0,
    };
    let (mut asked, price) = (0, 0.15);
    for _ in 0..1_000 {
        let pays = trust.share(0) > price;
        asked += u32::from(pays);
        let liar = pays.then_some((claim(0), false));
        trust.observe(liar.into_iter().chain([(claim(1), true)]));
    }
    assert!(asked < 60, "{asked}");
    assert!(trust.share(1) > 0.99);
    assert_eq!(trust.share(2), 1.0);
}

#[test]
fn a_path_too_unlikely_for_a_number_ends() {
    let bounds = Bounds {
        levels: 30,
        ..BOUNDS
    };
    let mut pending = PendingTree::default();
    let tokens: Vec<TokenId> = (0..12).collect();
    for at in 0..tokens.len() {
        let next = proposed(0, &tokens[..at], &[(tokens[at], None, 1e-7)]);
        pending.receive(&next, &[], bounds);
    }
    assert!((4..9).contains(&pending.levels()), "{}", pending.levels());
    for &token in &tokens[..3] {
        pending.advance(token);
    }
    let survivals = pending.nodes.iter().map(|node| node.claim.survival);
    assert!(survivals.clone().all(|it| it > 0.0 && it < 1e-6));
    assert!(survivals.count() > 0);
}

/// Tokens may only grow.
#[derive(Clone, Debug)]
struct Growing;

impl Constraint for Growing {
    fn push(&mut self, _token: TokenId) {}

    fn pop(&mut self, _tokens: usize) {}

    fn allowed(&self) -> Result<Option<Vec<u32>>, String> {
        Ok(None)
    }

    fn fitting(&self, tokens: &[TokenId]) -> usize {
        let falls = tokens.windows(2).position(|pair| pair[0] >= pair[1]);
        falls.map_or(tokens.len(), |at| at + 1)
    }

    fn forced(&self) -> Vec<TokenId> {
        Vec::new()
    }

    fn boxed(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }
}

#[test]
fn what_a_constraint_does_not_let_come_falls_off_with_what_grows_on_it() {
    let mut pending = PendingTree::default();
    let nodes = [
        (5, None, 0.9),
        (7, None, 0.1),
        (3, Some(0), 0.5),
        (6, Some(0), 0.4),
        (9, Some(2), 0.3),
        (8, Some(3), 0.2),
        (2, Some(1), 0.1),
    ];
    pending.receive(&proposed(0, &[], &nodes), &[], BOUNDS);
    assert_eq!(pending.keep_fitting(&Growing), 3);
    assert_eq!(
        tokens(&pending),
        [vec![5], vec![7], vec![5, 6], vec![5, 6, 8]]
    );
    assert_eq!(pending.keep_fitting(&Growing), 0);
}
