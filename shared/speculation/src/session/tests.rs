use std::time::Duration;

use super::*;
use crate::verification::LastToken;

const NOW: Duration = Duration::from_secs(1);

fn config(plan: Plan) -> SessionConfig {
    SessionConfig {
        end_tokens: vec![2],
        last_resort_retries: 2,
        ..SessionConfig::new(plan, 4, 8, 100)
    }
}

fn session(plan: Plan) -> Session {
    Session::new(config(plan), Duration::ZERO)
}

fn actions(session: &mut Session) -> Vec<Action> {
    std::iter::from_fn(|| session.poll()).collect()
}

fn send(round: u64, attempt: u32, base_len: u32, request: Request) -> Action {
    Action::Send {
        round,
        attempt,
        base_len,
        request,
    }
}

fn finish(reason: FinishReason) -> [Action; 3] {
    [
        Action::Close(Peer::Drafter),
        Action::Close(Peer::Verifier),
        Action::Finish(reason),
    ]
}

fn drafted(round: u64, tokens: &[TokenId]) -> Input {
    Input::Drafted {
        round,
        tokens: tokens.to_vec(),
    }
}

fn verified(round: u64, emitted: &[TokenId], accepted: usize, last: LastToken) -> Input {
    Input::Verified {
        round,
        emitted: emitted.to_vec(),
        accepted,
        last,
    }
}

fn failed(round: u64, peer: Peer, retry: bool) -> Input {
    Input::Failed {
        round,
        peer,
        reason: "gone".to_owned(),
        retry,
    }
}

/// Brings a speculative session to where the verifier is asked about `drafts`.
fn verifying(drafts: &[TokenId]) -> Session {
    let mut session = session(Plan::Speculative);
    actions(&mut session);
    session.handle(drafted(1, drafts), NOW);
    let request = Request::Verify {
        drafts: drafts.to_vec(),
    };
    assert_eq!(actions(&mut session), [send(1, 0, 0, request)]);
    session
}

#[test]
fn rounds_follow_each_other_until_the_limit() {
    let mut session = session(Plan::Speculative);
    assert_eq!(
        actions(&mut session),
        [send(1, 0, 0, Request::Draft { max_tokens: 4 })]
    );
    session.handle(drafted(1, &[10, 11, 12, 13]), NOW);
    actions(&mut session);
    session.handle(verified(1, &[10, 11, 12, 13, 14], 4, LastToken::Bonus), NOW);
    let mut tokens: Vec<_> = (10..14).map(|token| (token, Origin::Accepted)).collect();
    tokens.push((14, Origin::Bonus));
    // Three tokens are left, and the target adds one of them.
    let next = send(2, 0, 5, Request::Draft { max_tokens: 2 });
    assert_eq!(actions(&mut session), [Action::Emit(tokens), next]);
    session.handle(drafted(2, &[20, 21]), NOW);
    actions(&mut session);
    session.handle(verified(2, &[20, 30], 1, LastToken::Recovered), NOW);
    let emit = Action::Emit(vec![(20, Origin::Accepted), (30, Origin::Recovered)]);
    // One token left: the target alone.
    let alone = send(3, 0, 7, Request::Verify { drafts: Vec::new() });
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
fn a_lost_drafter_is_retried_then_done_without_then_tried_again() {
    let mut session = Session::new(
        SessionConfig {
            fallback_tokens: 2,
            ..config(Plan::Speculative)
        },
        Duration::ZERO,
    );
    actions(&mut session);
    let mut now = NOW;
    for attempt in 1..=2 {
        session.handle(failed(1, Peer::Drafter, true), now);
        assert_eq!(actions(&mut session), []);
        now = session.poll_timeout().expect("a pause");
        session.handle_timeout(now);
        let again = send(1, attempt, 0, Request::Draft { max_tokens: 4 });
        assert_eq!(actions(&mut session), [again]);
    }
    session.handle(failed(1, Peer::Drafter, true), now);
    assert_eq!(
        actions(&mut session),
        [send(1, 0, 0, Request::Decode { max_tokens: 2 })]
    );
    session.handle(
        Input::Decoded {
            round: 1,
            at: 0,
            tokens: vec![7],
        },
        now,
    );
    session.handle(
        Input::Decoded {
            round: 1,
            at: 0,
            tokens: vec![7],
        },
        now,
    );
    session.handle(
        Input::Decoded {
            round: 1,
            at: 1,
            tokens: vec![8],
        },
        now,
    );
    let expected = [
        Action::Emit(vec![(7, Origin::Target)]),
        Action::Emit(vec![(8, Origin::Target)]),
        send(2, 0, 2, Request::Draft { max_tokens: 4 }),
    ];
    assert_eq!(actions(&mut session), expected);
    session.handle(failed(2, Peer::Drafter, false), now);
    assert_eq!(
        actions(&mut session),
        [send(2, 0, 2, Request::Decode { max_tokens: 4 })]
    );
    assert_eq!(session.statistics().fallbacks.len(), 2);
    assert_eq!(session.statistics().retries, 2);
}

#[test]
fn silence_is_a_failure_too_and_a_lost_verifier_ends_the_request() {
    let mut session = verifying(&[10]);
    for attempt in 1..=2 {
        let due = session.poll_timeout().expect("a deadline");
        session.handle_timeout(NOW);
        assert_eq!(actions(&mut session), []);
        session.handle_timeout(due);
        let resume = session.poll_timeout().expect("a pause");
        session.handle_timeout(resume);
        let again = send(1, attempt, 0, Request::Verify { drafts: vec![10] });
        assert_eq!(actions(&mut session), [again]);
    }
    let due = session.poll_timeout().expect("a deadline");
    session.handle_timeout(due);
    let reason = "no answer within 30000 ms".to_owned();
    let end = finish(FinishReason::Failed {
        peer: Peer::Verifier,
        reason,
    });
    assert_eq!(actions(&mut session), end);
}

#[test]
fn decoding_goes_on_where_it_broke_off() {
    let mut session = session(Plan::TargetOnly);
    assert_eq!(
        actions(&mut session),
        [send(1, 0, 0, Request::Decode { max_tokens: 8 })]
    );
    session.handle(
        Input::Decoded {
            round: 1,
            at: 0,
            tokens: vec![5, 6],
        },
        NOW,
    );
    session.handle(failed(1, Peer::Verifier, true), NOW);
    let resume = session.poll_timeout().expect("a pause");
    actions(&mut session);
    session.handle_timeout(resume);
    assert_eq!(
        actions(&mut session),
        [send(1, 1, 2, Request::Decode { max_tokens: 6 })]
    );
    session.handle(
        Input::Decoded {
            round: 1,
            at: 2,
            tokens: vec![7, 2],
        },
        NOW,
    );
    assert_eq!(
        actions(&mut session).last(),
        Some(&Action::Finish(FinishReason::Stop))
    );
}

#[test]
fn backpressure_waits_for_the_verifier_and_skips_the_drafter() {
    let mut waiting = verifying(&[10]);
    let retry_after = Duration::from_secs(3);
    waiting.handle(
        Input::Backpressure {
            round: 1,
            peer: Peer::Verifier,
            retry_after,
        },
        NOW,
    );
    assert_eq!(waiting.poll_timeout(), Some(NOW + retry_after));
    let mut skipping = session(Plan::Speculative);
    actions(&mut skipping);
    skipping.handle(
        Input::Backpressure {
            round: 1,
            peer: Peer::Drafter,
            retry_after,
        },
        NOW,
    );
    assert_eq!(
        actions(&mut skipping),
        [send(1, 0, 0, Request::Decode { max_tokens: 8 })]
    );
}

#[test]
fn draft_only_uses_every_slot_and_fails_with_its_drafter() {
    let mut session = session(Plan::DraftOnly);
    for round in 1..=2 {
        let base_len = (round as u32 - 1) * 4;
        let actions = actions(&mut session);
        let draft = send(round, 0, base_len, Request::Draft { max_tokens: 4 });
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
    assert!(matches!(full.poll(), Some(Action::Emit(_))));
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

#[test]
fn progress_gives_decoding_its_retries_back() {
    let mut session = session(Plan::TargetOnly);
    let mut now = NOW;
    for at in 0..7 {
        session.handle(failed(1, Peer::Verifier, true), now);
        now = session.poll_timeout().expect("a pause");
        session.handle_timeout(now);
        let tokens = vec![10 + at];
        session.handle(
            Input::Decoded {
                round: 1,
                at,
                tokens,
            },
            now,
        );
        assert!(!session.is_finished());
    }
    assert_eq!(session.output().len(), 7);
}

#[test]
fn a_drafter_that_lies_about_its_laws_is_done_without() {
    let mut session = verifying(&[10, 11]);
    let reason = "no mass".to_owned();
    session.handle(
        Input::Disbelieved {
            round: 1,
            reason: reason.clone(),
        },
        NOW,
    );
    assert_eq!(
        actions(&mut session),
        [send(1, 0, 0, Request::Decode { max_tokens: 8 })]
    );
    let expected = Fallback {
        peer: Peer::Drafter,
        position: 0,
        reason,
    };
    assert_eq!(session.statistics().fallbacks, [expected]);
}

#[test]
fn a_silent_drafter_is_not_waited_for_as_long_as_a_verifier() {
    let speculative = session(Plan::Speculative);
    let draft_timeout = speculative.config.draft_timeout;
    assert_eq!(speculative.poll_timeout(), Some(draft_timeout));
    // Decoding alone there is nobody to fall back to.
    let lone = session(Plan::DraftOnly);
    assert_eq!(lone.poll_timeout(), Some(lone.config.round_timeout));
    assert!(draft_timeout < lone.config.round_timeout);
}
