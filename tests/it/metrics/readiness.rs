//! Readiness on the admin port, while a service drains.

use std::time::{Duration, Instant};

use coordinator::Coordinator;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Watched, openmetrics::Scrape};
use crate::client::{With, begin_unread, collect, request};
use crate::cluster::{PATIENCE, Service, client, config, target};
use crate::relay::Relay;

#[tokio::test]
async fn readiness_falls_on_drain_while_a_stream_goes_on() {
    let verifier = Watched::verifier(target()).await;
    let (process, admin) = super::process().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut config = config(&[], &[verifier.service.url()]);
    // The stream is to end by itself, on a busy machine too.
    config.server.drain_grace_ms = 120_000;
    let coordinator = Coordinator::new(config, process).await.expect("in order");
    let stop = CancellationToken::new();
    let until = stop.clone().cancelled_owned();
    let serving = tokio::spawn(async move {
        coordinator.serve(listener, until).await.expect("drained");
    });
    let watched = Watched {
        service: Service::of(address, serving),
        admin,
    };
    let ready = |scrape: &Scrape| {
        scrape.find("outrider_ready", &[("service", "outrider.v1.Coordinator")]) == Some(1.0)
    };
    watched.eventually("ready", ready).await;
    assert_eq!(watched.get("/readyz").await, (200, "ready\n".to_owned()));

    let long = request("Once upon a time", 480).ignoring_eos();
    let mut parts = begin_unread(&watched.service, long).await;
    parts.message().await.expect("a part");
    stop.cancel();
    let limit = Instant::now() + PATIENCE;
    let mut answered = watched.get("/readyz").await;
    while answered.0 == 200 && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(5)).await;
        answered = watched.get("/readyz").await;
    }
    let draining = "not ready: outrider.v1.Coordinator is draining\n";
    assert_eq!(answered, (503, draining.to_owned()));
    assert_eq!(watched.get("/livez").await, (200, "alive\n".to_owned()));
    let scrape = watched.scrape().await;
    assert_eq!(
        scrape.value("outrider_requests_running", &[]),
        1.0,
        "the stream goes on"
    );
    assert!(!ready(&scrape));
    // Its first part was read above.
    let mut tokens = 0;
    while let Some(message) = parts.message().await.expect("not cut") {
        if let Some(wire::v1::generate_response::Part::Chunk(chunk)) = message.part {
            tokens += chunk.token_ids.len();
        }
    }
    assert_eq!(tokens, 480);
    // The admin port is the process's own, and outlives its services.
    watched.service.ended().await;
    assert_eq!(watched.get("/livez").await.0, 200);
}

#[tokio::test]
async fn a_peer_that_is_away_is_no_reason_to_be_unready_once_it_was_there() {
    let verifier = Watched::verifier(target()).await;
    let relay = Relay::start(verifier.service.address).await;
    let coordinator = Watched::coordinator(config(&[], &[relay.url()])).await;
    let ready = async || coordinator.get("/readyz").await.0 == 200;
    let limit = Instant::now() + PATIENCE;
    while !ready().await && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(ready().await);
    relay.lead_to(None);
    let parts = client(&coordinator.service).generate(request("x", 2)).await;
    let answer = collect(parts.expect("begun").into_inner(), |_| {}).await;
    assert_eq!(answer.finished.reason(), wire::v1::FinishReason::Error);
    assert!(ready().await);
    assert_eq!(coordinator.get("/livez").await.0, 200);
    let scrape = coordinator.scrape().await;
    let resting = [
        ("model", "default"),
        ("role", "verifier"),
        ("state", "resting"),
    ];
    assert_eq!(scrape.value("outrider_peers", &resting), 1.0);
}
