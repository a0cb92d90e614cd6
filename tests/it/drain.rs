//! Services that are told to stop: what is under way moves to another replica, or ends where it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use drafter::Drafter;
use net::listen::ServerConfig;
use tonic::Code;
use verifier::Verifier;
use wire::status::{PeerFailure, classify};
use wire::v1::generate_response::Part;
use wire::v1::{FinishReason, GenerateRequest};

use crate::client::{Answer, With, begin, collect, generate, request, with_fault};
use crate::cluster::{
    Service, client, config, coordinator, draft, drafter, drafter_with, eventually, silent, target,
    verifier, verifier_with,
};
use crate::lifecycle::is_ready;
use crate::relay::Relay;
use crate::same::assert_same;

/// Far longer than anything here takes: who waits for it has not been handed over.
const LONG_GRACE_MS: u64 = 60_000;

/// Who is told to stop has so long to end what is open, and listens a little longer.
pub(crate) fn draining(server: &mut ServerConfig, grace_ms: u64) {
    (server.drain_grace_ms, server.drain_delay_ms) = (grace_ms, 100);
}

async fn patient_verifier() -> (Service, Arc<Verifier>) {
    verifier_with(target(), |config| {
        draining(&mut config.server, LONG_GRACE_MS);
    })
    .await
}

async fn patient_drafter() -> (Service, Arc<Drafter>) {
    drafter_with(draft(), |config| {
        draining(&mut config.server, LONG_GRACE_MS);
    })
    .await
}

/// Checks that a service that was told to stop ends, long before its grace is over.
pub(crate) async fn ends_soon(service: Service) {
    assert_eq!(service.ends(Duration::from_secs(5)).await, Ok(()));
}

/// Generates, and calls `then` once 30 tokens have come.
async fn interrupted(
    coordinator: &Service,
    requested: GenerateRequest,
    then: impl FnOnce(),
) -> Answer {
    with_fault(coordinator, requested, 30, then).await
}

fn requested(method: &str) -> GenerateRequest {
    request("Once upon a time", 300)
        .method(method)
        .temperature(1.0)
        .ignoring_eos()
}

/// The answer under which the first of two verifiers is told to stop. Which of the two a session goes to is drawn;
/// those that go to the other one stay there.
async fn stopped_under(
    coordinator: &Service,
    method: &str,
    (verifier, monitor): (&Service, &Arc<Verifier>),
) -> Answer {
    let mut stopped = false;
    for _ in 0..64 {
        let stop = || {
            if monitor.sessions().attached > 0 {
                stopped = true;
                verifier.stop.cancel();
            }
        };
        let answer = interrupted(coordinator, requested(method), stop).await;
        if stopped {
            return answer;
        }
        assert_eq!(answer.statistics().migrations, 0);
    }
    panic!("no session in 64 went to the first verifier");
}

#[tokio::test]
async fn sessions_leave_a_draining_verifier_without_a_failed_round() {
    let (drafter, _) = drafter(draft()).await;
    for method in ["coupled", "block", "target-only"] {
        let (first, first_monitor) = patient_verifier().await;
        let (second, _) = patient_verifier().await;
        let urls = [first.url(), second.url()];
        let coordinator = coordinator(config(&[drafter.url()], &urls)).await;
        let expected = generate(&coordinator, requested(method)).await.tokens;
        let stops = [first.stop.clone(), second.stop.clone()];
        let mut left = 0;
        let answer = interrupted(&coordinator, requested(method), || {
            left = usize::from(first_monitor.sessions().attached == 0);
            stops[left].cancel();
        });
        let answer = answer.await;
        assert_same(&requested(method), &answer.tokens, &expected);
        let statistics = answer.statistics();
        let counted = (statistics.migrations, statistics.retries);
        assert_eq!(counted, (1, 0), "{method}: moved before anything failed");
        assert!(answer.finished.exact);
        // Nothing holds it up any more, long before its grace is over.
        let leaving = if left == 0 { first } else { second };
        ends_soon(leaving).await;
    }
}

#[tokio::test]
async fn sessions_leave_a_draining_drafter_without_a_failed_round() {
    let (first, first_monitor) = patient_drafter().await;
    let (second, _) = patient_drafter().await;
    let (verifier, _) = verifier(target()).await;
    let urls = [first.url(), second.url()];
    let coordinator = coordinator(config(&urls, &[verifier.url()])).await;
    let expected = generate(&coordinator, requested("coupled")).await.tokens;
    let stops = [first.stop.clone(), second.stop.clone()];
    let mut left = 0;
    let answer = interrupted(&coordinator, requested("coupled"), || {
        left = usize::from(first_monitor.sessions().attached == 0);
        stops[left].cancel();
    });
    let answer = answer.await;
    assert_same(&requested("coupled"), &answer.tokens, &expected);
    assert_eq!(answer.fallbacks(), 0);
    assert_eq!(answer.statistics().retries, 0);
    let leaving = if left == 0 { first } else { second };
    ends_soon(leaving).await;
}

#[tokio::test]
async fn new_sessions_go_where_nobody_is_about_to_stop() {
    let (old, old_monitor) = verifier_with(target(), |config| {
        draining(&mut config.server, LONG_GRACE_MS);
        config.server.drain_delay_ms = LONG_GRACE_MS / 2;
    })
    .await;
    let (new, new_monitor) = verifier(target()).await;
    let (drafter, _) = drafter(draft()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[old.url(), new.url()])).await;
    let moved = stopped_under(&coordinator, "coupled", (&old, &old_monitor)).await;
    assert_eq!(moved.statistics().migrations, 1);
    let has_left = || old_monitor.sessions().attached == 0;
    eventually("the session has left", has_left).await;
    // It still listens, and is nowhere a session is sent.
    let before = old_monitor.engine().forwards;
    for seed in 0..16 {
        let answer = generate(&coordinator, request("x", 4).seed(seed)).await;
        assert_eq!(answer.statistics().migrations, 0);
    }
    assert_eq!(old_monitor.engine().forwards, before);
    assert!(new_monitor.engine().forwards > 0);
}

#[tokio::test]
async fn without_another_replica_a_session_stays_to_its_end() {
    let (drafter, _) = patient_drafter().await;
    let (verifier, _) = patient_verifier().await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    for method in ["target-only", "coupled"] {
        let expected = generate(&coordinator, requested(method)).await.tokens;
        let answer = interrupted(&coordinator, requested(method), || {
            if method == "coupled" {
                drafter.stop.cancel();
                verifier.stop.cancel();
            }
        });
        let answer = answer.await;
        assert_eq!(answer.tokens, expected);
        assert_eq!(answer.fallbacks(), 0);
        let statistics = answer.statistics();
        assert_eq!((statistics.migrations, statistics.retries), (0, 0));
    }
    ends_soon(drafter).await;
    ends_soon(verifier).await;
}

#[tokio::test]
async fn a_session_does_not_move_to_other_numerics_before_it_must() {
    let (old, monitor) = patient_verifier().await;
    let mut other = target();
    other.numerics.kernels = "others".to_owned();
    let (other, _) = verifier(other).await;
    let coordinator = coordinator(config(&[], &[old.url(), other.url()])).await;
    let stayed = stopped_under(&coordinator, "target-only", (&old, &monitor)).await;
    assert!(stayed.finished.exact);
    assert_eq!(stayed.statistics().migrations, 0);
    ends_soon(old).await;
}

#[tokio::test]
async fn readiness_falls_before_the_listener_closes() {
    let (peer, _) = verifier(target()).await;
    let mut config = config(&[], &[peer.url()]);
    let delay = Duration::from_secs(4);
    config.server.drain_delay_ms = delay.as_millis() as u64;
    let coordinator = coordinator(config).await;
    let long = request("Once upon a time", 300).ignoring_eos();
    let mut running = begin(&coordinator, long).await;
    running.message().await.expect("begun");
    coordinator.stop.cancel();
    let began = Instant::now();
    // On a connection of its own each time, so what answers is the listener that is still open.
    while is_ready(&coordinator).await {
        assert!(began.elapsed() < delay / 2, "still ready");
    }
    // Whoever has not heard of it yet is served.
    let answer = generate(&coordinator, request("x", 4)).await;
    assert_ne!(answer.finished.reason(), FinishReason::Error);
    assert!(began.elapsed() < delay);
    // What runs goes on to its end; its first part was read above.
    let mut tokens = 0;
    while let Some(message) = running.message().await.expect("not cut") {
        if let Some(Part::Chunk(chunk)) = message.part {
            tokens += chunk.token_ids.len();
        }
    }
    assert_eq!(tokens, 300);
    let mut late = client(&coordinator);
    ends_soon(coordinator).await;
    assert!(began.elapsed() >= delay);
    let refused = late.generate(request("x", 2)).await;
    refused.expect_err("nobody listens any more");
}

#[tokio::test]
async fn what_a_stopping_coordinator_cannot_finish_ends_with_one_retryable_error() {
    let (peer, _) = verifier(target()).await;
    let relay = Relay::start(peer.address).await;
    let mut config = config(&[], &[relay.url()]);
    config.server.drain_grace_ms = 2_000;
    let coordinator = coordinator(config).await;
    let requested = request("Once upon a time", 480).ignoring_eos();
    let expected = generate(&coordinator, requested.clone()).await.tokens;
    // A token takes a byte or more, so the answer cannot end by itself.
    relay.hold_after(400);
    let parts = begin(&coordinator, requested).await;
    coordinator.stop.cancel();
    let answer = collect(parts, |_| {}).await;
    assert_eq!(answer.finished.reason(), FinishReason::Error);
    assert_eq!(answer.finished.error_code, Code::Unavailable as u32);
    assert!(answer.finished.error.contains("shutting down"));
    assert!(answer.finished.retry_after_ms > 0);
    assert!(answer.tokens.len() < 480 && expected.starts_with(&answer.tokens));
    assert_eq!(coordinator.ends(Duration::from_secs(2)).await, Ok(()));
}

#[tokio::test]
async fn a_request_that_waits_for_a_verifier_is_told_when_to_come_back() {
    // It accepts connections and never says a word.
    let (_silent, _, url) = silent().await;
    let mut config = config(&[], &[url]);
    // It still listens for most of the grace, however late the request comes; the grace is over before the verifier's
    // silence ends its connection.
    config.server.drain_grace_ms = 2_000;
    config.server.drain_delay_ms = 1_500;
    let coordinator = coordinator(config).await;
    let mut client = client(&coordinator);
    let waiting = tokio::spawn(async move { client.generate(request("x", 4)).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    coordinator.stop.cancel();
    let refused = waiting.await.expect("no panic").expect_err("refused");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(
        matches!(classify(&refused), PeerFailure::Overloaded { .. }),
        "a time to wait: {refused:?}"
    );
    assert_eq!(coordinator.ends(Duration::from_secs(2)).await, Ok(()));
}
