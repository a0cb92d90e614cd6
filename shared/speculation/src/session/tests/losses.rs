//! Peers that fail: asked again, gone on without, or the end.

use super::*;

#[test]
fn a_lost_drafter_is_retried_then_done_without_then_tried_again() {
    let two_at_once = SessionConfig {
        fallback_tokens: 2,
        ..config(Plan::Speculative)
    };
    let mut session = begin(two_at_once);
    for attempt in 1..=2 {
        assert_eq!(on(&mut session, failed(1, Peer::Drafter, true)), []);
        assert_eq!(resumed(&mut session), [send(1, attempt, 0, draft(4))]);
    }
    let lost = on(&mut session, failed(1, Peer::Drafter, true));
    assert_eq!(lost, alone(1, 0, 2));
    session.handle(decoded(1, 0, &[7]), NOW);
    session.handle(decoded(1, 0, &[7]), NOW);
    let then = on(&mut session, decoded(1, 1, &[8]));
    let reported = [emit(Origin::Target, &[7]), emit(Origin::Target, &[8])];
    assert_eq!(then[..2], reported);
    assert_eq!(then[2..], [send(2, 0, 2, draft(4))]);
    let lost = on(&mut session, failed(2, Peer::Drafter, false));
    assert_eq!(lost, alone(2, 2, 4));
    assert_eq!(session.statistics().fallbacks.len(), 2);
    assert_eq!(session.statistics().retries, 2);
}

#[test]
fn silence_is_a_failure_too_and_a_lost_verifier_ends_the_request() {
    let mut session = verifying(&[10]);
    let due = session.poll_timeout().expect("a deadline");
    session.handle_timeout(NOW);
    assert_eq!(actions(&mut session), []);
    session.handle_timeout(due);
    assert_eq!(resumed(&mut session), [send(1, 1, 0, verify(&[10]))]);
    // A second silence ends later than five seconds after the first, and than all pauses between attempts would.
    session.handle_timeout(due + Duration::from_secs(5));
    let peer = Peer::Verifier;
    let reason = "no answer within 30000 ms".to_owned();
    let end = finish(FinishReason::Failed { peer, reason });
    assert_eq!(actions(&mut session), end);
}

#[test]
fn attempts_that_take_long_are_fewer() {
    let attempts = |took: u64| {
        let mut session = verifying(&[10]);
        session.config.last_resort_retries = 5;
        let mut now = NOW;
        let mut attempts = 0;
        while !session.finished {
            attempts += 1;
            now += Duration::from_millis(took);
            session.handle(failed(1, Peer::Verifier, true), now);
            now = session.poll_timeout().unwrap_or(now);
            session.handle_timeout(now);
            actions(&mut session);
        }
        (attempts, now.saturating_sub(NOW).as_millis() as u64)
    };
    // Pauses of 20, 80, 320, 1280 and 5120 ms.
    assert_eq!(attempts(0), (6, 6_820));
    assert_eq!(attempts(100), (6, 7_420));
    assert_eq!(attempts(3_000), (4, 12_420));
    assert_eq!(attempts(30_000), (2, 60_020));
}

#[test]
fn pauses_are_added_up_however_many_there_are() {
    let mut session = session(Plan::TargetOnly);
    session.config.retry_pause = Duration::from_millis(20);
    let pauses = |repetitions| session.pauses(repetitions).as_millis();
    assert_eq!([0, 1, 2, 5].map(pauses), [0, 20, 100, 6_820]);
    assert_eq!(pauses(8), 6_820 + 3 * 20_480);
    assert_eq!(pauses(u32::MAX), 27_300 + u128::from(u32::MAX - 6) * 20_480);
}

/// That an overloaded peer put it off is no failure, however long it did.
#[test]
fn waiting_for_an_overloaded_peer_takes_no_attempt_away() {
    let mut session = verifying(&[10]);
    session.config.deadline = Some(NOW + Duration::from_secs(600));
    let retry_after = Duration::from_secs(60);
    let overloaded = Input::Backpressure {
        round: 1,
        peer: Peer::Verifier,
        retry_after,
    };
    session.handle(overloaded, NOW);
    let later = NOW + retry_after;
    session.handle_timeout(later);
    actions(&mut session);
    session.handle(failed(1, Peer::Verifier, true), later);
    assert!(!session.finished);
    let resumed = session.poll_timeout().expect("a pause");
    assert!(resumed < later + Duration::from_secs(1));
}

#[test]
fn decoding_goes_on_where_it_broke_off() {
    let mut session = session(Plan::TargetOnly);
    assert_eq!(actions(&mut session), alone(1, 0, 8));
    session.handle(decoded(1, 0, &[5, 6]), NOW);
    on(&mut session, failed(1, Peer::Verifier, true));
    let decode = Request::Decode { max_tokens: 6 };
    assert_eq!(resumed(&mut session), [send(1, 1, 2, decode)]);
    let end = on(&mut session, decoded(1, 2, &[7, 2]));
    assert_eq!(end.last(), Some(&Action::Finish(FinishReason::Stop)));
}

#[test]
fn backpressure_waits_for_the_verifier_and_skips_the_drafter() {
    let retry_after = Duration::from_secs(3);
    let overloaded = |peer| Input::Backpressure {
        round: 1,
        peer,
        retry_after,
    };
    let mut waiting = verifying(&[10]);
    waiting.handle(overloaded(Peer::Verifier), NOW);
    assert_eq!(waiting.poll_timeout(), Some(NOW + retry_after));
    let mut skipping = begin(config(Plan::Speculative));
    let then = on(&mut skipping, overloaded(Peer::Drafter));
    assert_eq!(then, alone(1, 0, 8));
}

#[test]
fn progress_gives_decoding_its_retries_back() {
    let mut session = session(Plan::TargetOnly);
    for at in 0..7 {
        on(&mut session, failed(1, Peer::Verifier, true));
        resumed(&mut session);
        on(&mut session, decoded(1, at, &[10 + at]));
        assert!(!session.finished);
    }
    assert_eq!(session.output().len(), 7);
}

#[test]
fn a_drafter_that_lies_about_its_distributions_is_done_without() {
    let mut session = verifying(&[10, 11]);
    let reason = "no mass".to_owned();
    let rejected = Input::ProposalsRejected {
        round: 1,
        reason: reason.clone(),
    };
    assert_eq!(on(&mut session, rejected), alone(1, 0, 8));
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
    let lone = begin(config(Plan::DraftOnly));
    assert_eq!(lone.poll_timeout(), Some(NOW + lone.config.round_timeout));
    assert!(draft_timeout < lone.config.round_timeout);
}
