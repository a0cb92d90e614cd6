//! Rounds as they go, the plans of one model, and how a request ends.

use super::*;

#[test]
fn rounds_follow_each_other_until_the_limit() {
    let mut session = session(Plan::Speculative);
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(4))]);
    on(&mut session, drafted(1, &[10, 11, 12, 13]));
    let verdict = verified(1, &[10, 11, 12, 13, 14], 4, LastToken::Bonus);
    let next = on(&mut session, verdict);
    let mut tokens: Vec<_> = (10..14).map(|token| (token, Origin::Accepted)).collect();
    tokens.push((14, Origin::Bonus));
    // Three tokens are left, and the target adds one of them.
    assert_eq!(next, [Action::Emit(tokens), send(2, 0, 5, draft(2))]);
    on(&mut session, drafted(2, &[20, 21]));
    let next = on(
        &mut session,
        verified(2, &[20, 30], 1, LastToken::Recovered),
    );
    let emitted = Action::Emit(vec![(20, Origin::Accepted), (30, Origin::Recovered)]);
    // One token left: the target alone.
    assert_eq!(next, [emitted, send(3, 0, 7, verify(&[]))]);
    let end = on(&mut session, verified(3, &[40], 0, LastToken::Bonus));
    assert_eq!(end[0], emit(Origin::Target, &[40]));
    assert_eq!(end[1..], finish(FinishReason::Length));
    assert_eq!(session.output(), [10, 11, 12, 13, 14, 20, 30, 40]);
    assert_eq!(session.statistics().per_step_accepted, [4, 1]);
    assert_eq!(session.poll_timeout(), None);
}

#[test]
fn an_accepted_end_token_ends_without_a_bonus() {
    let mut session = verifying(&[10, 2]);
    let end = on(
        &mut session,
        verified(1, &[10, 2], 2, LastToken::AcceptedEnd),
    );
    assert_eq!(end, ended(&[10, 2], FinishReason::Stop));
}

#[test]
fn stale_and_duplicate_answers_are_ignored() {
    let mut session = verifying(&[10]);
    session.handle(drafted(1, &[11]), NOW);
    session.handle(verified(0, &[99], 0, LastToken::Recovered), NOW);
    assert_eq!(on(&mut session, decoded(1, 0, &[5])), []);
    let verdict = verified(1, &[10, 12], 1, LastToken::Bonus);
    on(&mut session, verdict.clone());
    assert_eq!(on(&mut session, verdict), []);
    assert_eq!(session.output(), [10, 12]);
}

#[test]
fn malformed_verdicts_end_the_request_and_emit_nothing() {
    for (emitted, accepted, last) in [
        (vec![], 0, LastToken::Recovered),
        (vec![10, 11, 12], 1, LastToken::Recovered),
        (vec![9, 12], 1, LastToken::Recovered),
        (vec![10, 100], 1, LastToken::Recovered),
        (vec![10, 11], 2, LastToken::AcceptedEnd),
        (vec![10, 11, 12], 2, LastToken::Recovered),
        (vec![10, 12], 1, LastToken::Bonus),
        (vec![10, 11, 12, 13], 3, LastToken::Bonus),
    ] {
        let mut session = verifying(&[10, 11]);
        session.handle(verified(1, &emitted, accepted, last), NOW);
        assert!(session.finished, "{emitted:?} {accepted} {last:?}");
        assert!(session.output().is_empty());
    }
}

#[test]
fn malformed_drafts_never_reach_the_verifier() {
    for tokens in [vec![], vec![1; 5], vec![100], vec![2, 10]] {
        let mut session = begin(config(Plan::Speculative));
        let then = on(&mut session, drafted(1, &tokens));
        assert_eq!(then, alone(1, 0, 8), "{tokens:?}");
        assert_eq!(session.statistics().fallbacks.len(), 1);
    }
}

#[test]
fn draft_only_uses_every_slot_and_fails_with_its_drafter() {
    let mut session = session(Plan::DraftOnly);
    let mut then = actions(&mut session);
    for round in 1..=2 {
        let base_len = (round as u32 - 1) * 4;
        assert_eq!(then.last(), Some(&send(round, 0, base_len, draft(4))));
        then = on(&mut session, drafted(round, &[10, 11, 12, 13]));
    }
    assert_eq!(then.last(), Some(&Action::Finish(FinishReason::Length)));
    let mut lost = super::session(Plan::DraftOnly);
    let end = on(&mut lost, failed(1, Peer::Drafter, false));
    let Some(Action::Finish(FinishReason::Failed { peer, .. })) = end.last() else {
        panic!("{end:?}");
    };
    assert_eq!(*peer, Peer::Drafter);
}

#[test]
fn stop_cancel_and_deadline_finish_exactly_once() {
    let mut stopped = verifying(&[10, 11]);
    on(
        &mut stopped,
        verified(1, &[10, 11, 12], 2, LastToken::Bonus),
    );
    stopped.handle(Input::Stop { len: 1 }, NOW);
    let end = on(&mut stopped, Input::Cancel);
    assert_eq!(end, finish(FinishReason::Stop));
    assert_eq!(stopped.output(), [10]);
    assert_eq!(on(&mut stopped, Input::Stop { len: 0 }), []);
    assert_eq!(stopped.output(), [10]);

    // The stop string stands in the very tokens that filled the limit.
    let limit = limits(Plan::TargetOnly, 1, 2, 100);
    let mut full = begin(limit);
    full.handle(decoded(1, 0, &[7, 8]), NOW);
    assert!(matches!(full.poll(NOW), Some(Action::Emit(_))));
    let end = on(&mut full, Input::Stop { len: 1 });
    assert_eq!(end, finish(FinishReason::Stop));
    assert_eq!(full.output(), [7]);

    let deadline = Some(Duration::from_secs(5));
    let limited = SessionConfig {
        deadline,
        ..config(Plan::Speculative)
    };
    let mut late = begin(limited);
    assert_eq!(late.poll_timeout(), deadline);
    late.handle_timeout(Duration::from_secs(5));
    assert_eq!(actions(&mut late), finish(FinishReason::DeadlineExceeded));
}
