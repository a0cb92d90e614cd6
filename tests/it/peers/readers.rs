//! A client that reads slowly holds up its own request and no other.

use std::time::Duration;

use futures_util::future::join_all;
use tonic::Streaming;
use wire::v1::generate_response::Part;
use wire::v1::{Finished, GenerateResponse};

use super::{ms, resting};
use crate::client::{With, read_through, request};
use crate::cluster::{config, coordinator, pair};

/// How long a peer may take, in milliseconds.
const TIMEOUT_MS: u64 = 1_000;

/// Reads an answer, and makes pauses between its parts for longer than a peer may take.
async fn read_slowly(mut parts: Streaming<GenerateResponse>) -> Finished {
    let mut pauses = 3;
    while let Some(part) = parts.message().await.expect("not broken") {
        if let Some(Part::Finished(finished)) = part.part {
            return finished;
        }
        if pauses > 0 {
            pauses -= 1;
            tokio::time::sleep(Duration::from_millis(TIMEOUT_MS + 400)).await;
        }
    }
    panic!("no end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_blames_no_peer() {
    let (drafter, verifier) = pair().await;
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    config.draft_timeout_ms = ms(TIMEOUT_MS);
    config.round_timeout_ms = ms(TIMEOUT_MS);
    let coordinator = coordinator(config).await;
    let readers = ["", "target-only"].map(async |method| {
        let mut requested = request("Once upon a time", 400).method(method);
        requested.report_rounds = true;
        read_slowly(read_through(&coordinator, requested.ignoring_eos(), 256).await).await
    });
    for finished in join_all(readers).await {
        let statistics = finished.speculation.expect("statistics");
        assert_eq!(statistics.fallbacks, [], "{}", finished.error);
        assert_eq!((finished.error.as_str(), statistics.retries), ("", 0));
    }
    let resting = resting(&coordinator, "drafter") + resting(&coordinator, "verifier");
    assert_eq!(resting, 0.0);
}
