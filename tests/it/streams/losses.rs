//! Verifiers that are lost, come back, or stop: the answer goes on as the target's own.

use wire::v1::GenerateRequest;

use super::{assert_accepted, assert_equal, patient, repeating, streamed};
use crate::client::{Answer, With, generate, with_fault};
use crate::cluster::{Service, config, coordinator};
use crate::drain::{draining, ends_soon};
use crate::relay::Relay;
use crate::same::assert_same;

/// A long answer, greedy or not by turns.
fn requested(turn: u64) -> GenerateRequest {
    let temperature = if turn.is_multiple_of(2) { 0.0 } else { 0.8 };
    let requested = repeating(200).temperature(temperature).seed(turn);
    requested.ignoring_eos()
}

/// The streamed answer under a fault after `after` tokens, which is that of the target alone without one.
async fn under_fault(
    coordinator: &Service,
    turn: u64,
    after: usize,
    fault: impl FnOnce(),
) -> Answer {
    let requested = requested(turn);
    let alone = requested.clone().method("target-only");
    let expected = generate(coordinator, alone).await;
    let answer = with_fault(coordinator, streamed(requested.clone()), after, fault).await;
    assert_same(&requested, &answer.tokens, &expected.tokens);
    assert_equal(&answer, &expected, &format!("turn {turn}"));
    assert_eq!(answer.fallbacks(), 0);
    answer
}

#[tokio::test]
async fn a_broken_stream_is_opened_again_and_drafts_go_on() {
    let (verifier, _) = patient(|_| {}).await;
    for (turn, after) in [(0, 1), (1, 20), (2, 90), (3, 150)] {
        let relay = Relay::start(verifier.address).await;
        let coordinator = coordinator(config(&[], &[relay.url()])).await;
        let answer = under_fault(&coordinator, turn, after, || relay.cut()).await;
        assert!(answer.statistics().retries > 0, "turn {turn}");
        if turn.is_multiple_of(2) {
            assert_accepted(&answer, "greedy");
        }
    }
}

#[tokio::test]
async fn a_fresh_verifier_takes_over_with_what_is_pending() {
    for turn in 0..2 {
        let (old, _) = patient(|_| {}).await;
        let (fresh, monitor) = patient(|_| {}).await;
        let relay = Relay::start(old.address).await;
        let coordinator = coordinator(config(&[], &[relay.url()])).await;
        let moved = || {
            relay.lead_to(Some(fresh.address));
            drop(old);
        };
        let answer = under_fault(&coordinator, turn, 60, moved).await;
        assert!(answer.statistics().retries > 0);
        if turn == 0 {
            // It takes fewer forwards than there are tokens to go.
            let forwards = monitor.engine().forwards;
            assert!((1..140).contains(&forwards), "{forwards}");
        }
    }
}

#[tokio::test]
async fn a_verifier_that_comes_back_after_a_while_goes_on() {
    let (old, _) = patient(|_| {}).await;
    let (fresh, _) = patient(|_| {}).await;
    let relay = Relay::start(old.address).await;
    let mut config = config(&[], &[relay.url()]);
    config.verifier_retries = 5;
    let coordinator = coordinator(config).await;
    let restart = || relay.restarts_as(fresh.address);
    under_fault(&coordinator, 0, 30, restart).await;
}

#[tokio::test]
async fn a_session_moves_to_the_other_replica() {
    for turn in 0..2 {
        let (first, first_monitor) = patient(|_| {}).await;
        let (second, _) = patient(|_| {}).await;
        let urls = [first.url(), second.url()];
        let coordinator = coordinator(config(&[], &urls)).await;
        // Whichever replica the session is on, it is the one that is killed.
        let mut replicas = Some((first, second));
        let mut survivor = None;
        let kill = || {
            let (first, second) = replicas.take().expect("once");
            survivor = Some(if first_monitor.sessions().attached > 0 {
                drop(first);
                second
            } else {
                drop(second);
                first
            });
        };
        let answer = under_fault(&coordinator, turn, 40, kill).await;
        assert_eq!(answer.statistics().migrations, 1);
    }
}

#[tokio::test]
async fn a_session_leaves_a_draining_verifier_between_two_forwards() {
    for turn in 0..2 {
        let stopping = || patient(|config| draining(&mut config.server, 60_000));
        let (first, first_monitor) = stopping().await;
        let (second, _) = stopping().await;
        let urls = [first.url(), second.url()];
        let coordinator = coordinator(config(&[], &urls)).await;
        let stops = [first.stop.clone(), second.stop.clone()];
        let mut left = 0;
        let stop = || {
            left = usize::from(first_monitor.sessions().attached == 0);
            stops[left].cancel();
        };
        let answer = under_fault(&coordinator, turn, 40, stop).await;
        let counted = answer.statistics();
        assert_eq!((counted.migrations, counted.retries), (1, 0), "turn {turn}");
        ends_soon(if left == 0 { first } else { second }).await;
    }
}

#[tokio::test]
async fn without_another_replica_a_session_stays_to_its_end() {
    let (verifier, _) = patient(|config| draining(&mut config.server, 60_000)).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    let stop = || verifier.stop.cancel();
    let answer = under_fault(&coordinator, 0, 40, stop).await;
    let counted = answer.statistics();
    assert_eq!((counted.migrations, counted.retries), (0, 0));
    assert_accepted(&answer, "to the end");
    ends_soon(verifier).await;
}
