//! The health service's own `Watch` serves as the long stream.

mod grpc_only;
mod startup;

use net::Credentials;
use net::channel::{ChannelConfig, PeerChannel, connect};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tonic::Streaming;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::*;
use crate::process::Process;

const SERVICE: &str = "outrider.v1.Verifier";
/// Far longer than anything here takes, so that only a fault reaches it.
const LIMIT: Duration = Duration::from_secs(6);

struct Running {
    health: Health,
    stop: CancellationToken,
    server: JoinHandle<Result<(), ServeError>>,
    client: HealthClient<PeerChannel>,
}

async fn start(drain_grace_ms: u64) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let health = Health::new(SERVICE, &Process::default());
    let stop = CancellationToken::new();
    let config = ServerConfig {
        drain_grace_ms,
        ..ServerConfig::default()
    };
    let server = tokio::spawn({
        let (health, stop) = (health.clone(), stop.clone());
        async move {
            let (services, process) = (Described::default(), Process::default());
            serve(
                services,
                listener,
                &config,
                &process,
                &health,
                stop.cancelled(),
                || true,
            )
            .await
        }
    });
    let channel = connect(&url, &ChannelConfig::default(), &Credentials::default());
    let client = HealthClient::new(channel.unwrap());
    Running {
        health,
        stop,
        server,
        client,
    }
}

fn request(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

impl Running {
    async fn status(&mut self, service: &str) -> ServingStatus {
        let reply = self.client.check(request(service)).await.unwrap();
        reply.into_inner().status()
    }

    async fn watch(&mut self) -> Streaming<HealthCheckResponse> {
        let stream = self.client.watch(request(SERVICE)).await.unwrap();
        stream.into_inner()
    }
}

/// Returns what a watch is told next.
async fn told_next(watch: &mut Streaming<HealthCheckResponse>) -> ServingStatus {
    let reported = timeout(LIMIT, watch.message()).await.unwrap();
    reported.unwrap().unwrap().status()
}

#[tokio::test]
async fn a_late_warm_up_does_not_undo_a_drain() {
    let mut running = start(1_000).await;
    let mut watch = running.watch().await;
    running.health.ready();
    // Each is seen before the next, so that the server knows of the drain.
    for (reported, next) in [
        (ServingStatus::Serving, true),
        (ServingStatus::NotServing, false),
    ] {
        while told_next(&mut watch).await != reported {}
        if next {
            running.health.drain();
        }
    }
    running.health.ready();
    let mut last = None;
    while let Ok(Ok(Some(reply))) = timeout(Duration::from_millis(200), watch.message()).await {
        last = Some(reply.status());
    }
    assert!(last.is_none_or(|status| status == ServingStatus::NotServing));
}

#[tokio::test]
async fn an_idle_server_drains_at_once() {
    let mut running = start(60_000).await;
    running.health.ready();
    assert_eq!(running.status("").await, ServingStatus::Serving);
    running.stop.cancel();
    let ended = timeout(LIMIT, running.server).await;
    let ended = ended.expect("an idle connection must not hold up the drain");
    ended.unwrap().unwrap();
    assert!(running.health.is_draining());
}

#[tokio::test]
async fn an_open_stream_is_told_and_cut_when_the_grace_is_over() {
    let mut running = start(300).await;
    running.health.ready();
    let mut watch = running.watch().await;
    assert_eq!(told_next(&mut watch).await, ServingStatus::Serving);

    let began = Instant::now();
    running.stop.cancel();
    assert_eq!(told_next(&mut watch).await, ServingStatus::NotServing);
    // The stream may go on for the grace.
    assert!(!running.server.is_finished());

    let ended = timeout(LIMIT, running.server).await;
    ended.expect("the grace bounds the drain").unwrap().unwrap();
    assert!(began.elapsed() >= Duration::from_millis(300));
    let cut = timeout(LIMIT, watch.message()).await;
    cut.expect("no stream outlives the server").unwrap_err();
}

#[tokio::test]
async fn a_service_that_gives_up_is_drained_within_the_grace_too() {
    let mut running = start(100).await;
    let mut watch = running.watch().await;
    watch.message().await.unwrap().unwrap();
    running.health.drain();
    let ended = timeout(LIMIT, running.server).await;
    ended.expect("the grace bounds the drain").unwrap().unwrap();
}

#[tokio::test]
async fn dropping_the_server_cuts_its_connections() {
    let mut running = start(60_000).await;
    let mut watch = running.watch().await;
    watch.message().await.unwrap().unwrap();
    running.server.abort();
    let cut = timeout(LIMIT, watch.message()).await;
    cut.expect("no stream outlives the server").unwrap_err();
    assert!(running.client.check(request("")).await.is_err());
}
