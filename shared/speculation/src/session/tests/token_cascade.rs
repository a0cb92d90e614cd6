//! The token cascade: draft tokens stand, the target speaks where the distribution says defer, and at the
//! latest after the longest run.

use super::*;

const PLAN: Plan = Plan::TokenCascade { max_run: 3 };

/// A session of eight tokens at most, whose first request was sent.
fn started() -> Session {
    let mut session = session(PLAN);
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(3))]);
    session
}

#[test]
fn one_target_token_follows_where_the_distribution_defers_and_the_draft_model_goes_on() {
    let mut session = started();
    let actions = on(&mut session, stopped(1, &[10, 11], DraftStop::Policy));
    let reported = emit(Origin::Accepted, &[10, 11]);
    assert_eq!(actions, [reported, send(2, 0, 2, verify(&[]))]);
    // The run begins anew after the target's token.
    let actions = on(&mut session, verified(2, &[20], 0, LastToken::Bonus));
    let reported = emit(Origin::Deferred, &[20]);
    assert_eq!(actions, [reported, send(3, 0, 3, draft(3))]);
    // Nothing is drafted where the very first distribution defers.
    let actions = on(&mut session, stopped(3, &[], DraftStop::Policy));
    assert_eq!(actions, [send(4, 0, 3, verify(&[]))]);
    let actions = on(&mut session, verified(4, &[21], 0, LastToken::Bonus));
    let reported = emit(Origin::Deferred, &[21]);
    assert_eq!(actions, [reported, send(5, 0, 4, draft(3))]);
    let statistics = session.statistics();
    assert_eq!(statistics.deferral_rate(), Some(0.5));
    assert_eq!(statistics.verification_rate(), Some(0.5));
    assert_eq!((statistics.target_forwards, statistics.at_max_run), (2, 0));
    // Two tokens, and two positions that the rule deferred.
    assert_eq!(statistics.draft_forwards, 4);
    assert_eq!(statistics.rejection_rate(), None);
    assert!(session.is_exact());
}

/// Nothing is drafted beyond the longest run, and whether the rule would have deferred after it is not asked.
#[test]
fn the_target_speaks_after_the_longest_run() {
    let full = [10, 11, 12];
    for answer in [
        drafted(1, &full),
        stopped(1, &full, DraftStop::Policy),
        stopped(1, &full, DraftStop::Context),
    ] {
        let mut session = started();
        let next = on(&mut session, answer);
        let reported = emit(Origin::Accepted, &full);
        assert_eq!(next, [reported, send(2, 0, 3, verify(&[]))]);
        let actions = on(&mut session, verified(2, &[20], 0, LastToken::Bonus));
        let reported = emit(Origin::Deferred, &[20]);
        assert_eq!(actions, [reported, send(3, 0, 4, draft(3))]);
        let statistics = session.statistics();
        assert_eq!((statistics.target_forwards, statistics.at_max_run), (1, 1));
        assert_eq!((statistics.drafted, statistics.discarded), (3, 0));
        assert_eq!(statistics.deferral_rate(), Some(0.25));
        let (spent, came_of_it) = balance(statistics);
        assert_eq!(spent, came_of_it);
    }
}

#[test]
fn a_run_spans_blocks_that_the_peer_cuts_short() {
    let mut session = started();
    let actions = on(&mut session, drafted(1, &[10]));
    let reported = emit(Origin::Accepted, &[10]);
    assert_eq!(actions, [reported, send(2, 0, 1, draft(2))]);
    let actions = on(&mut session, drafted(2, &[11, 12]));
    let reported = emit(Origin::Accepted, &[11, 12]);
    assert_eq!(actions, [reported, send(3, 0, 3, verify(&[]))]);
    on(&mut session, verified(3, &[20], 0, LastToken::Bonus));
    assert_eq!(session.statistics().at_max_run, 1);
}

#[test]
fn a_run_has_no_limit_but_the_output_if_none_is_set() {
    let plan = Plan::TokenCascade { max_run: u32::MAX };
    let mut session = session(plan);
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(8))]);
    let tokens: Vec<TokenId> = (10..18).collect();
    let then = on(&mut session, drafted(1, &tokens));
    assert_eq!(then, ended(&tokens, FinishReason::Length));
    assert_eq!(session.statistics().deferral_rate(), Some(0.0));
    assert_eq!(session.statistics().target_forwards, 0);
}

#[test]
fn an_end_token_of_either_model_ends_the_output() {
    let mut session = started();
    let then = on(&mut session, stopped(1, &[10, 2], DraftStop::EndToken));
    assert_eq!(then, ended(&[10, 2], FinishReason::Stop));
    let mut session = started();
    on(&mut session, stopped(1, &[], DraftStop::Policy));
    let then = on(&mut session, verified(2, &[2], 0, LastToken::Bonus));
    assert_eq!(then[0], emit(Origin::Deferred, &[2]));
    assert_eq!(then[1..], finish(FinishReason::Stop));
}

#[test]
fn a_lost_drafter_or_a_full_context_leaves_the_target_alone_and_is_no_cascade() {
    let full = "the draft model's context is full";
    let empty = "malformed answer: 0 draft tokens, expected 1 to 3";
    for (answer, emitted, reason) in [
        (failed(1, Peer::Drafter, false), 0, "gone"),
        (stopped(1, &[], DraftStop::Context), 0, full),
        (stopped(1, &[10], DraftStop::Context), 1, full),
        (drafted(1, &[]), 0, empty),
    ] {
        let mut session = started();
        let actions = on(&mut session, answer);
        let then = alone(1, emitted, 8 - emitted);
        assert_eq!(actions.last(), Some(&then[0]));
        let fallback = &session.statistics().fallbacks[0];
        assert_eq!((fallback.position, &fallback.reason[..]), (emitted, reason));
        assert!(!session.is_exact());
        on(&mut session, decoded(1, emitted, &[20]));
        // A rule judges no position that the target decoded alone.
        let rate = (emitted > 0).then_some(0.0);
        assert_eq!(session.statistics().deferral_rate(), rate);
        assert_eq!(session.statistics().fallback_tokens, 1);
        assert_eq!(session.statistics().at_max_run, 0);
    }
}

/// What the target says alone breaks a run off like any other token of its own.
#[test]
fn a_run_begins_anew_after_the_target_was_alone() {
    let one_at_once = SessionConfig {
        fallback_tokens: 1,
        ..config(PLAN)
    };
    let mut session = begin(one_at_once);
    on(&mut session, drafted(1, &[10, 11]));
    on(&mut session, failed(2, Peer::Drafter, false));
    let actions = on(&mut session, decoded(2, 2, &[20]));
    assert_eq!(actions.last(), Some(&send(3, 0, 3, draft(3))));
}

#[test]
fn the_verifier_cannot_be_done_without() {
    let mut session = started();
    on(&mut session, stopped(1, &[], DraftStop::Policy));
    // Nothing of the drafter's stands in the request.
    let reason = "no mass".to_owned();
    let disbelieved = Input::ProposalsRejected { round: 2, reason };
    let end = on(&mut session, disbelieved);
    let Some(Action::Finish(FinishReason::Failed { peer, .. })) = end.last() else {
        panic!("{end:?}");
    };
    assert_eq!(*peer, Peer::Verifier);
}
