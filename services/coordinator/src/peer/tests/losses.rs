//! Streams that break: what their endpoints are taken for.

use std::io;

use super::*;

/// The status of a connection that broke.
fn broken() -> Status {
    let mut status = Status::unavailable("the connection broke");
    status.set_source(Arc::new(io::Error::from(io::ErrorKind::BrokenPipe)));
    status
}

/// Whether the endpoint of a stream is left alone that breaks after the drafter said nothing for `silence`.
async fn is_left_alone_after(silence: Duration) -> bool {
    let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
    let endpoint = peers.drafter.endpoint.clone().expect("an endpoint");
    let (mut requested, others) = (draft(4), RoundProposals::default());
    let position = position(&OUTPUT);
    let answer = peers.answer(&mut requested, position, &others);
    let breaking = async {
        wire.requests.recv().await.expect("a request");
        tokio::time::sleep(silence).await;
        wire.replies.send(Err(broken())).await.expect("awaited");
    };
    let (answer, ()) = tokio::join!(answer, breaking);
    answer.expect_err("it broke");
    // A health check takes no longer.
    tokio::time::sleep(Duration::from_secs(2)).await;
    !endpoint.is_alive()
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_after_a_silence_takes_its_endpoint_along() {
    assert!(is_left_alone_after(Duration::from_secs(2)).await);
    assert!(!is_left_alone_after(Duration::from_millis(500)).await);
}
