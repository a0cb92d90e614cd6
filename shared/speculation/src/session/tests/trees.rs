//! Draft trees: what is asked, what is taken, what is counted.

use super::*;
use crate::drafting::TreeShape;

fn tree_config() -> SessionConfig {
    SessionConfig {
        tree: TreeShape::Comb(3),
        carries_layers: false,
        ..config(Plan::Speculative)
    }
}

/// A comb of two levels: 10, 11, 12, and below 10 then 20, 21.
const TOKENS: [TokenId; 5] = [10, 11, 12, 20, 21];
const PARENTS: [Option<u32>; 5] = [None, None, None, Some(0), Some(0)];

fn tree(tokens: &[TokenId], parents: &[Option<u32>]) -> DraftTree {
    DraftTree::new(tokens.to_vec(), parents.to_vec()).expect("a tree")
}

fn comb() -> DraftTree {
    tree(&TOKENS, &PARENTS)
}

fn grown(drafts: DraftTree, stop: DraftStop) -> Input {
    let block = DraftBlock {
        stop,
        ..block(drafts)
    };
    Input::Drafted { round: 1, block }
}

fn verify_tree(drafts: DraftTree) -> Request {
    Request::Verify {
        horizon: (drafts.len() as u32).into(),
        drafts,
        layers: Vec::new(),
    }
}

/// A session whose first request was sent.
fn started() -> Session {
    let mut session = Session::new(tree_config());
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(4))]);
    session
}

/// A session that waits for the verdict on the comb.
fn waiting() -> Session {
    let mut session = started();
    let requested = on(&mut session, grown(comb(), DraftStop::Length));
    assert_eq!(requested, [send(1, 0, 0, verify_tree(comb()))]);
    session
}

fn balances(session: &Session) -> bool {
    let (spent, came_to) = balance(session.statistics());
    spent == came_to
}

#[test]
fn a_path_through_the_tree_is_emitted_and_the_other_nodes_are_discarded() {
    use LastToken::{Bonus, Recovered};
    for (emitted, path, last, origin) in [
        (&[10, 21, 50][..], &[0, 4][..], Bonus, Origin::Bonus),
        (&[11, 50], &[1], Bonus, Origin::Bonus),
        (&[10, 50], &[0], Recovered, Origin::Recovered),
        (&[50], &[], Recovered, Origin::Recovered),
    ] {
        let mut session = waiting();
        let next = on(&mut session, walked(1, emitted, path, last));
        let accepted = emitted[..path.len()].iter();
        let mut tokens: Vec<_> = accepted.map(|&token| (token, Origin::Accepted)).collect();
        tokens.push((50, origin));
        assert_eq!(next[0], Action::Emit(tokens));
        let statistics = session.statistics();
        assert_eq!((statistics.drafted, statistics.draft_forwards), (5, 2));
        assert_eq!(statistics.per_step_drafted, [5]);
        assert_eq!(statistics.per_step_accepted, [path.len() as u32]);
        assert_eq!(statistics.discarded, 5 - path.len() as u32);
        let refusals = u32::from(last == Recovered);
        assert_eq!(statistics.refusals, refusals);
        assert_eq!(statistics.tested, path.len() as u32 + refusals);
        assert_eq!(statistics.acceptance_histogram()[path.len()], 1);
        assert!(balances(&session));
    }
}

#[test]
fn a_verdict_that_does_not_follow_the_tree_is_refused() {
    for (emitted, path, last) in [
        // Not below one another.
        (&[11, 20, 50][..], &[1, 3][..], LastToken::Bonus),
        (&[20, 50], &[3], LastToken::Bonus),
        // Another node's token; a node that is not there; a node twice.
        (&[11, 50], &[0], LastToken::Recovered),
        (&[10, 50], &[7], LastToken::Bonus),
        (&[10, 10, 50], &[0, 0], LastToken::Recovered),
        // A bonus after a node that has children, none after a leaf.
        (&[10, 50], &[0], LastToken::Bonus),
        (&[10, 20, 50], &[0, 3], LastToken::Recovered),
        // The walk would have gone on.
        (&[10, 21], &[0], LastToken::Recovered),
        (&[12], &[], LastToken::Recovered),
        // Too few and too many tokens; no end token.
        (&[10], &[0], LastToken::Recovered),
        (&[10, 20, 50, 51], &[0, 3], LastToken::Bonus),
        (&[10], &[0], LastToken::AcceptedEnd),
        (&[50, 51], &[], LastToken::Recovered),
        // No token of the vocabulary.
        (&[10, 100], &[0], LastToken::Recovered),
    ] {
        let mut session = waiting();
        let next = on(&mut session, walked(1, emitted, path, last));
        let reason = match next.last() {
            Some(Action::Finish(FinishReason::Failed { peer, reason })) => {
                assert_eq!(*peer, Peer::Verifier);
                reason
            }
            other => panic!("{emitted:?} {path:?} {last:?} came to {other:?}"),
        };
        assert!(reason.starts_with("malformed answer"), "{reason}");
        assert_eq!(session.statistics().discarded, 5);
    }
}

#[test]
fn a_tree_that_was_not_asked_for_costs_the_drafter_its_place() {
    use DraftStop::{EndToken, Length};
    let (none, some) = (None, Some);
    let deep: Vec<_> = (0..5_u32).map(|node| node.checked_sub(1)).collect();
    let deep = tree(&[10, 11, 12, 13, 14], &deep);
    let wide: Vec<TokenId> = (10..23).collect();
    let wide = tree(&wide, &[none; 13]);
    let pair = tree(&[10, 11], &[none, none]);
    let foreign = tree(&[10, 100], &[none, none]);
    let below_end = tree(&[2, 11, 12], &[none, none, some(0)]);
    let beside_end = tree(&[2, 11, 12], &[none, none, some(1)]);
    let nothing = DraftTree::default();
    let [chain, comb3] = [TreeShape::Chain, TreeShape::Comb(3)];
    for (shape, drafts, stop, reason) in [
        (chain, pair, Length, "a draft tree, expected a chain"),
        (comb3, wide, Length, "13 draft tokens, expected 1 to 12"),
        (comb3, deep, Length, "5 levels, expected at most 4"),
        (comb3, foreign, Length, "token id 100"),
        (comb3, below_end, Length, "follow the end token at index 0"),
        (comb3, comb(), EndToken, "ends with no end token"),
        (comb3, beside_end, EndToken, "ends with no end token"),
        (comb3, nothing, Length, "0 draft tokens"),
    ] {
        let config = SessionConfig {
            tree: shape,
            ..tree_config()
        };
        let mut session = begin(config);
        let next = on(&mut session, grown(drafts, stop));
        assert_eq!(next, alone(1, 0, 8), "{reason}");
        let reported = &session.statistics().fallbacks[0].reason;
        assert!(reported.contains(reason), "{reported}");
        // Nothing of it is counted.
        assert_eq!(balance(session.statistics()), (0, 0));
    }
}

/// An end token may stand beside the lead: only what is below it has no place.
#[test]
fn an_end_token_ends_its_own_path_only() {
    let drafts = tree(&[10, 2, 20, 21], &[None, None, Some(0), Some(0)]);
    let begin = || {
        let mut session = started();
        let requested = on(&mut session, grown(drafts.clone(), DraftStop::Length));
        assert_eq!(requested, [send(1, 0, 0, verify_tree(drafts.clone()))]);
        session
    };
    let mut session = begin();
    let next = on(&mut session, walked(1, &[2], &[1], LastToken::AcceptedEnd));
    assert_eq!(next[0], emit(Origin::Accepted, &[2]));
    assert_eq!(next[1..], finish(FinishReason::Stop));
    assert_eq!(session.statistics().withheld, 1);
    assert!(balances(&session));
    let mut session = begin();
    let verdict = walked(1, &[10, 21, 50], &[0, 3], LastToken::Bonus);
    let next = on(&mut session, verdict);
    assert_eq!(next[1], send(2, 0, 3, draft(4)));
    // A block that ends in the last level.
    let ends = tree(&[10, 11, 20, 2], &[None, None, Some(0), Some(0)]);
    let mut session = started();
    let requested = on(&mut session, grown(ends.clone(), DraftStop::EndToken));
    assert_eq!(requested, [send(1, 0, 0, verify_tree(ends))]);
}

#[test]
fn a_tree_is_sent_again_as_it_was_and_discarded_whole_when_it_is_lost() {
    let mut session = waiting();
    assert_eq!(on(&mut session, failed(1, Peer::Verifier, true)), []);
    assert_eq!(resumed(&mut session), [send(1, 1, 0, verify_tree(comb()))]);
    let verdict = walked(1, &[10, 21, 50], &[0, 4], LastToken::Bonus);
    let next = on(&mut session, verdict);
    assert_eq!(next[1], send(2, 0, 3, draft(4)));
    assert!(balances(&session));

    for end in [
        failed(1, Peer::Verifier, false),
        Input::Cancel,
        Input::Stop { len: 0 },
    ] {
        let mut session = waiting();
        on(&mut session, end);
        assert!(session.finished);
        assert_eq!(session.statistics().discarded, 5);
        assert!(balances(&session));
    }
}

#[test]
fn forwards_are_counted_by_model_where_the_drafter_tells_them() {
    let mut session = started();
    let reported = |round, forwards: &[u32]| {
        let block = DraftBlock {
            forwards: forwards.to_vec(),
            ..block(comb())
        };
        Input::Drafted { round, block }
    };
    on(&mut session, reported(1, &[2, 9]));
    assert_eq!(session.statistics().draft_forwards_by_model, [2, 9]);
    assert_eq!(session.statistics().draft_forwards, 11);
    // A model that joins later; counts add up, and cannot overflow.
    on(&mut session, walked(1, &[50], &[], LastToken::Recovered));
    on(&mut session, reported(2, &[1, 1, u32::MAX]));
    let statistics = session.statistics();
    assert_eq!(statistics.draft_forwards_by_model, [3, 10, u32::MAX]);
    assert_eq!(statistics.draft_forwards, u32::MAX);
    // More models than there are levels in the key of a draw.
    let mut session = started();
    let next = on(&mut session, reported(1, &[1; 17]));
    assert_eq!(next, alone(1, 0, 8));
}
