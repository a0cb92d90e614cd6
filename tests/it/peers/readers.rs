//! A client that reads slowly holds up its own request and no other.

use std::time::Duration;

use tonic::transport::Channel;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_response::Part;
use wire::v1::{Finished, GenerateRequest};

use super::{Counted, ms};
use crate::client::{With, request};
use crate::cluster::{config, draft, drafter, target, verifier};

/// How long a peer may take, in milliseconds.
const TIMEOUT_MS: u64 = 1_000;

/// Reads an answer through a window of a few hundred bytes, and makes pauses between its parts for longer than a
/// peer may take.
async fn read_slowly(url: String, request: GenerateRequest) -> Finished {
    let channel = Channel::from_shared(url).expect("a URL");
    let channel = channel.initial_stream_window_size(256).connect_lazy();
    let parts = CoordinatorClient::new(channel).generate(request).await;
    let mut parts = parts.expect("in order").into_inner();
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
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    config.draft_timeout_ms = ms(TIMEOUT_MS);
    config.round_timeout_ms = ms(TIMEOUT_MS);
    let counted = Counted::start(config).await;
    let readers = ["", "target-only"].map(|method| {
        let mut request = request("Once upon a time", 400)
            .ignoring_eos()
            .method(method);
        request.report_rounds = true;
        tokio::spawn(read_slowly(counted.service.url(), request))
    });
    for reader in readers {
        let finished = reader.await.expect("read to the end");
        let statistics = finished.speculation.expect("statistics");
        assert_eq!(statistics.fallbacks, [], "{}", finished.error);
        assert_eq!((finished.error.as_str(), statistics.retries), ("", 0));
    }
    assert_eq!(
        counted.resting("drafter") + counted.resting("verifier"),
        0.0
    );
}
