//! Services that are told to stop: what is under way moves to another replica, or ends where it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::{Coordinator, CoordinatorConfig};
use drafter::{Drafter, DrafterConfig, Loaded};
use model::Model;
use model::source::ServedModel;
use server::process::Process;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use verifier::{Verifier, VerifierConfig};
use wire::status::{PeerFailure, classify};
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_response::Part;
use wire::v1::{FinishReason, GenerateRequest};

use crate::client::{Answer, With, collect, generate, request, with_fault};
use crate::cluster::{
    Service, config, coordinator, draft, drafter, eventually, silent, target, verifier,
};
use crate::relay::Relay;

/// Far longer than anything here takes: who waits for it has not been handed over.
const LONG_GRACE_MS: u64 = 60_000;

/// How long a service that is told to stop still listens, unless a test is about that.
pub(crate) const DELAY_MS: u64 = 100;

/// A service that can be told to stop.
pub(crate) struct Stoppable {
    address: SocketAddr,
    pub(crate) stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Stoppable {
    async fn start<F>(serve: impl FnOnce(TcpListener, CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, stop.clone()));
        Self {
            address,
            stop,
            task,
        }
    }

    pub(crate) async fn verifier(
        model: ServedModel<Model>,
        grace_ms: u64,
        delay_ms: u64,
    ) -> (Self, Arc<Verifier>) {
        let mut config = VerifierConfig::default();
        config.server.drain_grace_ms = grace_ms;
        config.server.drain_delay_ms = delay_ms;
        let verifier = verifier::start(model, &config, Process::default());
        let verifier = verifier.expect("a verifier");
        let monitor = Arc::clone(&verifier);
        let serve = |listener, stop: CancellationToken| async move {
            let served = verifier.serve(listener, stop.cancelled()).await;
            served.expect("served");
        };
        (Self::start(serve).await, monitor)
    }

    async fn drafter(grace_ms: u64) -> (Self, Arc<Drafter>) {
        let mut config = DrafterConfig::default();
        config.server.drain_grace_ms = grace_ms;
        let loaded = Loaded::beside(draft(), &config).expect("a configuration in order");
        let drafter = drafter::start(loaded, &config, Process::default());
        let drafter = drafter.expect("a drafter");
        let monitor = Arc::clone(&drafter);
        let serve = |listener, stop: CancellationToken| async move {
            let served = drafter.serve(listener, stop.cancelled()).await;
            served.expect("served");
        };
        (Self::start(serve).await, monitor)
    }

    async fn coordinator(config: CoordinatorConfig) -> Self {
        let coordinator = Coordinator::new(config, Process::default());
        let coordinator = coordinator.expect("a coordinator");
        let serve = |listener, stop: CancellationToken| async move {
            let served = coordinator.serve(listener, stop.cancelled()).await;
            served.expect("served");
        };
        Self::start(serve).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A connection of its own.
    fn channel(&self) -> Channel {
        let channel = Channel::from_shared(self.url());
        channel.expect("a URL").connect_lazy()
    }

    pub(crate) async fn ended_within(self, limit: Duration) {
        let ended = tokio::time::timeout(limit, self.task).await;
        ended.expect("in time").expect("no panic");
    }
}

/// Generates, and calls `then` once 30 tokens have come.
async fn interrupted(coordinator: &Service, asked: GenerateRequest, then: impl FnOnce()) -> Answer {
    with_fault(coordinator, asked, 30, then).await
}

fn asked(method: &str) -> GenerateRequest {
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
    (verifier, monitor): (&Stoppable, &Arc<Verifier>),
) -> Answer {
    let mut stopped = false;
    for _ in 0..64 {
        let stop = || {
            if monitor.sessions().attached > 0 {
                stopped = true;
                verifier.stop.cancel();
            }
        };
        let answer = interrupted(coordinator, asked(method), stop).await;
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
        let (first, first_monitor) = Stoppable::verifier(target(), LONG_GRACE_MS, DELAY_MS).await;
        let (second, _) = Stoppable::verifier(target(), LONG_GRACE_MS, DELAY_MS).await;
        let urls = [first.url(), second.url()];
        let coordinator = coordinator(config(&[drafter.url()], &urls)).await;
        let expected = generate(&coordinator, asked(method)).await.tokens;
        let stops = [first.stop.clone(), second.stop.clone()];
        let mut left = 0;
        let answer = interrupted(&coordinator, asked(method), || {
            left = usize::from(first_monitor.sessions().attached == 0);
            stops[left].cancel();
        });
        let answer = answer.await;
        assert_eq!(answer.tokens, expected, "{method}");
        let statistics = answer.statistics();
        let counted = (statistics.migrations, statistics.retries);
        assert_eq!(counted, (1, 0), "{method}: moved before anything failed");
        assert!(answer.finished.exact);
        // Nothing holds it up any more, long before its grace is over.
        let leaving = if left == 0 { first } else { second };
        leaving.ended_within(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn sessions_leave_a_draining_drafter_without_a_failed_round() {
    let (first, first_monitor) = Stoppable::drafter(LONG_GRACE_MS).await;
    let (second, _) = Stoppable::drafter(LONG_GRACE_MS).await;
    let (verifier, _) = verifier(target()).await;
    let urls = [first.url(), second.url()];
    let coordinator = coordinator(config(&urls, &[verifier.url()])).await;
    let expected = generate(&coordinator, asked("coupled")).await.tokens;
    let stops = [first.stop.clone(), second.stop.clone()];
    let mut left = 0;
    let answer = interrupted(&coordinator, asked("coupled"), || {
        left = usize::from(first_monitor.sessions().attached == 0);
        stops[left].cancel();
    });
    let answer = answer.await;
    assert_eq!(answer.tokens, expected);
    assert_eq!(answer.fallbacks(), 0);
    assert_eq!(answer.statistics().retries, 0);
    let leaving = if left == 0 { first } else { second };
    leaving.ended_within(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn new_sessions_go_where_nobody_is_about_to_stop() {
    let (old, old_monitor) = Stoppable::verifier(target(), LONG_GRACE_MS, LONG_GRACE_MS / 2).await;
    let (new, new_monitor) = verifier(target()).await;
    let (drafter, _) = drafter(draft()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[old.url(), new.url()])).await;
    let moved = stopped_under(&coordinator, "coupled", (&old, &old_monitor)).await;
    assert_eq!(moved.statistics().migrations, 1);
    let has_left = || old_monitor.sessions().attached == 0;
    eventually("the session has left", has_left).await;
    // It still listens, and is nowhere a session is sent.
    let before = old_monitor.totals().forwards;
    for seed in 0..16 {
        let answer = generate(&coordinator, request("x", 4).seed(seed)).await;
        assert_eq!(answer.statistics().migrations, 0);
    }
    assert_eq!(old_monitor.totals().forwards, before);
    assert!(new_monitor.totals().forwards > 0);
}

#[tokio::test]
async fn without_another_replica_a_session_stays_to_its_end() {
    let (drafter, _) = Stoppable::drafter(LONG_GRACE_MS).await;
    let (verifier, _) = Stoppable::verifier(target(), LONG_GRACE_MS, DELAY_MS).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    for method in ["target-only", "coupled"] {
        let expected = generate(&coordinator, asked(method)).await.tokens;
        let answer = interrupted(&coordinator, asked(method), || {
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
    drafter.ended_within(Duration::from_secs(5)).await;
    verifier.ended_within(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_session_does_not_move_to_other_numerics_before_it_must() {
    let (old, monitor) = Stoppable::verifier(target(), LONG_GRACE_MS, DELAY_MS).await;
    let mut other = target();
    other.numerics.kernels = "others".to_owned();
    let (other, _) = verifier(other).await;
    let coordinator = coordinator(config(&[], &[old.url(), other.url()])).await;
    let stayed = stopped_under(&coordinator, "target-only", (&old, &monitor)).await;
    assert!(stayed.finished.exact);
    assert_eq!(stayed.statistics().migrations, 0);
    old.ended_within(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn readiness_falls_before_the_listener_closes() {
    let (peer, _) = verifier(target()).await;
    let mut config = config(&[], &[peer.url()]);
    let delay = Duration::from_secs(4);
    config.server.drain_delay_ms = delay.as_millis() as u64;
    let coordinator = Stoppable::coordinator(config).await;
    let mut client = CoordinatorClient::new(coordinator.channel());
    let long = request("Once upon a time", 300).ignoring_eos();
    let mut running = client.generate(long).await.expect("in order").into_inner();
    running.message().await.expect("begun");
    coordinator.stop.cancel();
    let began = Instant::now();
    let status = loop {
        // On a connection of its own each time, so what answers is the listener that is still open.
        let mut health = HealthClient::new(coordinator.channel());
        let asked = health.check(HealthCheckRequest::default()).await;
        let status = asked.expect("still listening").into_inner().status();
        if status == ServingStatus::NotServing || began.elapsed() > delay / 2 {
            break status;
        }
    };
    assert_eq!(status, ServingStatus::NotServing);
    // Whoever has not heard of it yet is served.
    let mut late = CoordinatorClient::new(coordinator.channel());
    let parts = late.generate(request("x", 4)).await.expect("in order");
    let answer = collect(parts.into_inner(), |_| {}).await;
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
    let channel = coordinator.channel();
    coordinator.ended_within(Duration::from_secs(5)).await;
    assert!(began.elapsed() >= delay);
    let mut late = CoordinatorClient::new(channel);
    let refused = late.generate(request("x", 2)).await;
    refused.expect_err("nobody listens any more");
}

#[tokio::test]
async fn what_a_stopping_coordinator_cannot_finish_ends_with_one_retryable_error() {
    let (peer, _) = verifier(target()).await;
    let relay = Relay::start(peer.address).await;
    let mut config = config(&[], &[relay.url()]);
    config.server.drain_grace_ms = 2_000;
    let coordinator = Stoppable::coordinator(config).await;
    let asked = request("Once upon a time", 480).ignoring_eos();
    let mut client = CoordinatorClient::new(coordinator.channel());
    let expected = client.generate(asked.clone()).await.expect("in order");
    let expected = collect(expected.into_inner(), |_| {}).await.tokens;
    // A token takes a byte or more, so the answer cannot end by itself.
    relay.hold_after(400);
    let parts = client.generate(asked).await.expect("in order").into_inner();
    coordinator.stop.cancel();
    let answer = collect(parts, |_| {}).await;
    assert_eq!(answer.finished.reason(), FinishReason::Error);
    assert_eq!(answer.finished.error_code, Code::Unavailable as u32);
    assert!(answer.finished.error.contains("shutting down"));
    assert!(answer.finished.retry_after_ms > 0);
    assert!(answer.tokens.len() < 480 && expected.starts_with(&answer.tokens));
    coordinator.ended_within(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_request_that_waits_for_a_verifier_is_told_when_to_come_back() {
    // It accepts connections and never says a word.
    let (_silent, _, url) = silent().await;
    let mut config = config(&[], &[url]);
    // It still listens for most of the grace, however late the request comes.
    config.server.drain_grace_ms = 4_000;
    config.server.drain_delay_ms = 2_900;
    let coordinator = Stoppable::coordinator(config).await;
    let mut client = CoordinatorClient::new(coordinator.channel());
    let waiting = tokio::spawn(async move { client.generate(request("x", 4)).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    coordinator.stop.cancel();
    let refused = waiting.await.expect("no panic").expect_err("refused");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(
        matches!(classify(&refused), PeerFailure::Overloaded { .. }),
        "a time to wait: {refused:?}"
    );
    coordinator.ended_within(Duration::from_secs(2)).await;
}
