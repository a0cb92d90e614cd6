//! Rounds as they go, the plans of one model, and how a request ends.

use super::*;

#[test]
fn rounds_follow_each_other_until_the_limit() {
    let mut session = session(Plan::Speculative);
    assert_eq!(
        actions(&mut session),
        [send(
            1,
            0,
            0,
            Request::Draft {
                max_tokens: 4,
                bonus_q: false
            }
        )]
    );
    session.handle(drafted(1, &[10, 11, 12, 13]), NOW);
    actions(&mut session);
    session.handle(verified(1, &[10, 11, 12, 13, 14], 4, LastToken::Bonus), NOW);
    let mut tokens: Vec<_> = (10..14).map(|token| (token, Origin::Accepted)).collect();
    tokens.push((14, Origin::Bonus));
    // Three tokens are left, and the target adds one of them.
    let next = send(
        2,
        0,
        5,
        Request::Draft {
            max_tokens: 2,
            bonus_q: false,
        },
    );
    assert_eq!(actions(&mut session), [Action::Emit(tokens), next]);
    session.handle(drafted(2, &[20, 21]), NOW);
    actions(&mut session);
    session.handle(verified(2, &[20, 30], 1, LastToken::Recovered), NOW);
    let emit = Action::Emit(vec![(20, Origin::Accepted), (30, Origin::Recovered)]);
    // One token left: the target alone.
    let alone = send(
        3,
        0,
        7,
        Request::Verify {
            drafts: DraftTree::default(),
            horizon: 0,
            layers: Vec::new(),
        },
    );
    assert_eq!(actions(&mut session), [emit, alone]);
    session.handle(verified(3, &[40], 0, LastToken::Bonus), NOW);
    let mut expected = vec![Action::Emit(vec![(40, Origin::Target)])];
    expected.extend(finish(FinishReason::Length));
    assert_eq!(actions(&mut session), expected);
    assert_eq!(session.output(), [10, 11, 12, 13, 14, 20, 30, 40]);
    assert_eq!(session.statistics().per_step_accepted, [4, 1]);
    assert_eq!(session.poll_timeout(), None);
}

#[test]
fn an_accepted_end_token_ends_without_a_bonus() {
    let mut session = verifying(&[10, 2]);
    session.handle(verified(1, &[10, 2], 2, LastToken::AcceptedEnd), NOW);
    let mut expected = vec![Action::Emit(vec![
        (10, Origin::Accepted),
        (2, Origin::Accepted),
    ])];
    expected.extend(finish(FinishReason::Stop));
    assert_eq!(actions(&mut session), expected);
}

#[test]
fn stale_and_duplicate_answers_are_ignored() {
    let mut session = verifying(&[10]);
    session.handle(drafted(1, &[11]), NOW);
    session.handle(verified(0, &[99], 0, LastToken::Recovered), NOW);
    session.handle(
        Input::Decoded {
            round: 1,
            at: 0,
            tokens: vec![5],
        },
        NOW,
    );
    assert_eq!(actions(&mut session), []);
    let verdict = verified(1, &[10, 12], 1, LastToken::Bonus);
    session.handle(verdict.clone(), NOW);
    actions(&mut session);
    session.handle(verdict, NOW);
    assert_eq!(actions(&mut session), []);
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
        assert!(session.is_finished(), "{emitted:?} {accepted} {last:?}");
        assert!(session.output().is_empty());
    }
}

#[test]
fn malformed_drafts_never_reach_the_verifier() {
    for tokens in [vec![], vec![1; 5], vec![100], vec![2, 10]] {
        let mut session = session(Plan::Speculative);
        actions(&mut session);
        session.handle(drafted(1, &tokens), NOW);
        let alone = send(1, 0, 0, Request::Decode { max_tokens: 8 });
        assert_eq!(actions(&mut session), [alone], "{tokens:?}");
        assert_eq!(session.statistics().fallbacks.len(), 1);
    }
}

#[test]
fn draft_only_uses_every_slot_and_fails_with_its_drafter() {
    let mut session = session(Plan::DraftOnly);
    for round in 1..=2 {
        let base_len = (round as u32 - 1) * 4;
        let actions = actions(&mut session);
        let draft = send(
            round,
            0,
            base_len,
            Request::Draft {
                max_tokens: 4,
                bonus_q: false,
            },
        );
        assert_eq!(actions.last(), Some(&draft));
        session.handle(drafted(round, &[10, 11, 12, 13]), NOW);
    }
    assert_eq!(
        actions(&mut session).last(),
        Some(&Action::Finish(FinishReason::Length))
    );
    let mut lost = Session::new(config(Plan::DraftOnly), Duration::ZERO);
    lost.handle(failed(1, Peer::Drafter, false), NOW);
    assert!(matches!(
        actions(&mut lost).last(),
        Some(Action::Finish(FinishReason::Failed {
            peer: Peer::Drafter,
            ..
        }))
    ));
}

#[test]
fn stop_cancel_and_deadline_finish_exactly_once() {
    let mut stopped = verifying(&[10, 11]);
    stopped.handle(verified(1, &[10, 11, 12], 2, LastToken::Bonus), NOW);
    actions(&mut stopped);
    stopped.handle(Input::Stop { len: 1 }, NOW);
    stopped.handle(Input::Cancel, NOW);
    assert_eq!(actions(&mut stopped), finish(FinishReason::Stop));
    assert_eq!(stopped.output(), [10]);
    stopped.handle(Input::Stop { len: 0 }, NOW);
    assert_eq!(actions(&mut stopped), []);
    assert_eq!(stopped.output(), [10]);

    // The stop string stands in the very tokens that filled the limit.
    let limit = SessionConfig::new(Plan::TargetOnly, 1, 2, 100);
    let mut full = Session::new(limit, NOW);
    actions(&mut full);
    full.handle(
        Input::Decoded {
            round: 1,
            at: 0,
            tokens: vec![7, 8],
        },
        NOW,
    );
    assert!(matches!(full.poll(NOW), Some(Action::Emit(_))));
    full.handle(Input::Stop { len: 1 }, NOW);
    assert_eq!(actions(&mut full), finish(FinishReason::Stop));
    assert_eq!(full.output(), [7]);

    let deadline = Some(Duration::from_secs(5));
    let mut late = Session::new(
        SessionConfig {
            deadline,
            ..config(Plan::Speculative)
        },
        NOW,
    );
    actions(&mut late);
    assert_eq!(late.poll_timeout(), deadline);
    late.handle_timeout(Duration::from_secs(5));
    assert_eq!(actions(&mut late), finish(FinishReason::DeadlineExceeded));
}
