//! Peers that fail: asked again, gone on without, or the end.

use super::*;

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
        let again = send(
            1,
            attempt,
            0,
            Request::Draft {
                max_tokens: 4,
                bonus_q: false,
            },
        );
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
        send(
            2,
            0,
            2,
            Request::Draft {
                max_tokens: 4,
                bonus_q: false,
            },
        ),
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
        let again = send(
            1,
            attempt,
            0,
            Request::Verify {
                drafts: vec![10].into(),
                horizon: 1,
                layers: Vec::new(),
            },
        );
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
        Input::ProposalsRejected {
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
    let mut speculative = session(Plan::Speculative);
    let draft_timeout = speculative.config.draft_timeout;
    // A peer's time begins when it is asked, however long that takes after it was decided.
    assert_eq!(speculative.poll_timeout(), None);
    actions(&mut speculative);
    assert_eq!(speculative.poll_timeout(), Some(NOW + draft_timeout));
    // Decoding alone there is nobody to fall back to.
    let mut lone = session(Plan::DraftOnly);
    actions(&mut lone);
    assert_eq!(lone.poll_timeout(), Some(NOW + lone.config.round_timeout));
    assert!(draft_timeout < lone.config.round_timeout);
}
