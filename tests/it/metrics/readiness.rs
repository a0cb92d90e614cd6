//! Readiness on the admin port, while a peer is away.

use std::time::{Duration, Instant};

use super::{MODEL, Watched};
use crate::client::{request, try_generate};
use crate::cluster::{PATIENCE, config, target};
use crate::relay::Relay;

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
    let answer = try_generate(&coordinator.service, request("x", 2)).await;
    let finished = answer.expect("begun").finished;
    assert_eq!(finished.reason(), wire::v1::FinishReason::Error);
    assert!(ready().await);
    assert_eq!(coordinator.get("/livez").await.0, 200);
    let scrape = coordinator.scrape().await;
    let resting = [MODEL, ("role", "verifier"), ("state", "resting")];
    assert_eq!(scrape.value("outrider_peers", &resting), 1.0);
}
