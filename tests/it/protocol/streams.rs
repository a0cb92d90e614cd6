//! How sessions outlive their streams.

use tonic::Code;
use wire::status::names_field;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{Close, Open, VerifyRound};

use super::{SessionStream, open, with_header};
use crate::cluster::{eventually, target, verifier, verifier_with};
use crate::drain::{draining, ends_soon};
use crate::metrics::Scrape;
use crate::relay::Relay;

#[tokio::test]
async fn a_broken_stream_detaches_and_the_next_open_reattaches() {
    let (verifier, monitor) = verifier(target()).await;
    let relay = Relay::start(verifier.address).await;
    let mut stream = SessionStream::at_verifier(relay.url(), |_| {}).await;
    let requested = with_header(VerifyRound::default(), 1, &[900, 901]);
    let first = stream.verdict(requested.clone()).await.expect("a verdict");
    relay.cut();
    assert!(stream.receive().await.is_err());
    let detached = |scrape: &Scrape| {
        let of = |state| scrape.sum("outrider_sessions", &[("state", state)]);
        (of("open"), of("detached")) == (0.0, 1.0)
    };
    verifier.shows("it is detached", detached).await;
    eventually("its sequence is kept", || monitor.engine().sequences == 1).await;
    let opened = SessionStream::verify(relay.url(), open(|_| {})).await;
    let (mut stream, opened) = opened.expect("a session in order");
    assert_eq!(opened.held_len, 2);
    let again = stream.verdict(requested).await.expect("a verdict");
    assert!(stream.header().replayed);
    assert_eq!(first.emitted, again.emitted);
}

#[tokio::test]
async fn a_detached_session_is_freed_when_its_lease_ends() {
    let (verifier, monitor) = verifier(target()).await;
    let relay = Relay::start(verifier.address).await;
    let mut stream = SessionStream::at_verifier(relay.url(), |open| open.lease_ms = 300).await;
    let requested = with_header(VerifyRound::default(), 1, &[]);
    stream.verdict(requested).await.expect("a verdict");
    relay.cut();
    eventually("it is detached", || monitor.sessions().detached == 1).await;
    eventually("it is freed", || {
        monitor.sessions().detached == 0 && monitor.engine().sequences == 0
    })
    .await;
}

#[tokio::test]
async fn close_and_reset_free_the_session_at_once() {
    let (verifier, monitor) = verifier(target()).await;
    let mut closing = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let round = with_header(VerifyRound::default(), 1, &[]);
    closing.verdict(round).await.expect("a verdict");
    let reply = closing.ask(Request::Close(Close {})).await;
    assert!(matches!(reply, Ok(Reply::Closed(_))), "{reply:?}");
    eventually("close frees it", || monitor.sessions().attached == 0).await;
    assert_eq!(monitor.sessions().detached, 0);
    eventually("and its memory", || monitor.engine().sequences == 0).await;
    let resetting = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    assert_eq!(monitor.sessions().attached, 1);
    drop(resetting);
    eventually("reset frees it", || monitor.sessions().attached == 0).await;
    assert_eq!(monitor.sessions().detached, 0);
}

/// The session of a refused stream is kept, for the stream that is opened once the peer was asked again.
#[tokio::test]
async fn a_stream_for_other_numerics_than_the_peers_is_refused_by_name() {
    let (verifier, monitor) = verifier(target()).await;
    let own = monitor.description.numerics.clone().expect("numerics");
    let relay = Relay::start(verifier.address).await;
    let mut stream = SessionStream::at_verifier(relay.url(), |open| {
        open.numerics.clone_from(&own.weights);
    })
    .await;
    let round = with_header(VerifyRound::default(), 1, &[900]);
    stream.verdict(round).await.expect("a verdict");
    relay.cut();
    eventually("it is detached", || monitor.sessions().detached == 1).await;
    let refused = SessionStream::refused(verifier.url(), |open| {
        (open.epoch, open.numerics) = (2, "others".to_owned());
    })
    .await;
    assert_eq!(refused.code(), Code::Aborted);
    assert!(names_field(&refused, "numerics"), "{refused:?}");
    let again = open(|open| (open.epoch, open.numerics) = (3, own.weights));
    let opened = SessionStream::verify(verifier.url(), again).await;
    assert_eq!(opened.expect("a session in order").1.held_len, 1);
}

#[tokio::test]
async fn a_newer_stream_takes_the_session_from_a_half_open_one() {
    let (verifier, _) = verifier(target()).await;
    let mut old = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let mut new = SessionStream::at_verifier(verifier.url(), |open| open.epoch = 2).await;
    let ended = old.receive().await.expect_err("ended");
    assert_eq!(ended.code(), Code::Aborted);
    // One that was opened before does not take it back.
    let stale = SessionStream::refused(verifier.url(), |_| {}).await;
    assert_eq!(stale.code(), Code::Aborted);
    let mut requested = with_header(VerifyRound::default(), 1, &[]);
    requested.header.get_or_insert_default().epoch = 2;
    assert!(new.verdict(requested).await.is_ok());
}

#[tokio::test]
async fn nothing_is_stored_that_the_context_cannot_hold() {
    let (verifier, monitor) = verifier(target()).await;
    let long = |open: &mut Open| open.prompt_token_ids = vec![5; 513];
    let refused = SessionStream::refused(verifier.url(), long).await;
    assert!(
        refused.message().starts_with("prompt_token_ids"),
        "{refused:?}"
    );
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let requested = with_header(VerifyRound::default(), 1, &[900; 600]);
    let refused = stream.verdict(requested).await.expect_err("refused");
    assert_eq!(refused.code(), Code::OutOfRange);
    let labels = [("role", "verifier"), ("outcome", "refused")];
    let counted = verifier
        .scrape()
        .value("outrider_peer_rounds_total", &labels);
    assert_eq!(counted, 1.0);
    let opened = SessionStream::verify(verifier.url(), open(|_| {})).await;
    let (_, opened) = opened.expect("a session in order");
    assert_eq!(opened.held_len, 0);
    assert_eq!(monitor.engine().cached_tokens, 0);
}

#[tokio::test]
async fn streams_begin_with_open_and_only_there() {
    let (verifier, _) = verifier(target()).await;
    let bad = SessionStream::refused(verifier.url(), |open| open.vocab_size = 5_000).await;
    assert_eq!(bad.code(), Code::InvalidArgument);
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let again = Request::Open(open(|_| {}));
    let status = stream.ask(again).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_peer_that_stops_says_so_and_ends_what_is_left_with_a_word() {
    // It is asked to end a second before the grace is over.
    let (verifier, _) = verifier_with(target(), |config| draining(&mut config.server, 5_000)).await;
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    verifier.stop.cancel();
    let reported = stream.receive().await.expect("open");
    assert!(matches!(reported, Reply::Draining(_)));
    // Told at once, and not when it is asked to end: it still answers.
    let round = with_header(VerifyRound::default(), 1, &[]);
    stream.verdict(round).await.expect("answered");
    let ended = stream.receive().await.expect_err("ended");
    assert_eq!(ended.code(), Code::Unavailable);
    assert!(ended.message().contains("shutting down"), "{ended:?}");
    ends_soon(verifier).await;
}
