//! A verifier's rounds that take long, or fail: told of while they go on, late when they do not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ops::process::Process;
use tonic::Code;
use verifier::{Verifier, VerifierConfig};
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{AcceptAt, Close, DecodeRound, Progress, RoundRequest, TokenTree, VerifyRound};

use super::{Asked, SessionStream, with_header};
use crate::cluster::{Service, eventually, target, verifier_in};
use crate::paced::{Pace, paced};

/// A chunk of the prefill takes a small part of the round's time, all of it twice the time.
const PACE: Duration = Duration::from_millis(40);
const TIMEOUT: Duration = Duration::from_millis(1_000);
/// Fifty chunks of eight.
const PROMPT: u32 = 400;

/// The kinds of rounds.
const KINDS: [&str; 4] = ["chain", "tree", "slices", "decode"];

fn within(asked: impl Asked, timeout: Duration) -> RoundRequest {
    let mut request = with_header(asked, 1, &[]);
    let header = request.header.get_or_insert_default();
    header.timeout_ms = timeout.as_millis() as u32;
    request
}

fn decode(max_tokens: u32, timeout: Duration) -> Request {
    let round = DecodeRound {
        max_tokens,
        ..Default::default()
    };
    Request::Round(within(round, timeout))
}

/// A round of three draft tokens, or of two tokens decoded alone.
fn round(kind: &str) -> Request {
    if kind == "decode" {
        return decode(2, TIMEOUT);
    }
    let parents: &[i32] = if kind == "tree" { &[-1, -1, 0] } else { &[] };
    let drafts = TokenTree {
        token_ids: vec![1, 2, 3],
        parents: parents.to_vec(),
    };
    let round = VerifyRound {
        drafts: Some(drafts),
        ..Default::default()
    };
    Request::Round(within(round, TIMEOUT))
}

/// A session at a verifier that forwards at most eight tokens at once.
struct Slow {
    stream: SessionStream,
    pace: Pace,
    monitor: Arc<Verifier>,
    _service: Service,
}

impl Slow {
    async fn opened(kind: &str, prompt: u32) -> Self {
        let pace = Pace::default();
        let mut config = VerifierConfig::default();
        config.engine.max_batch_tokens = 8.try_into().expect("not zero");
        let model = paced(target(), &pace);
        let (service, monitor) = verifier_in(Process::default(), model, config).await;
        let stream = SessionStream::at_verifier(service.url(), |open| {
            open.prompt_token_ids = (0..prompt).collect();
            if kind == "slices" {
                open.accept_at = AcceptAt::Coordinator.into();
            }
        });
        Self {
            stream: stream.await,
            pace,
            monitor,
            _service: service,
        }
    }
}

async fn a_long_prefill(kind: &str) {
    let mut slow = Slow::opened(kind, PROMPT).await;
    slow.pace.slow(PACE);
    let began = Instant::now();
    slow.stream.send(round(kind)).await;
    let mut reported: Vec<Progress> = Vec::new();
    let answer = loop {
        match slow.stream.receive().await.expect(kind) {
            Reply::Progress(progress) => reported.push(progress),
            Reply::Answer(answer) => break answer,
            other => panic!("another reply: {other:?}"),
        }
    };
    assert!(began.elapsed() > 2 * TIMEOUT);
    let is_asked_for = match answer.part.expect("a part") {
        Part::Slice(_) => kind == "slices",
        Part::Decoded(_) => kind == "decode",
        Part::Verdict(_) => kind == "chain" || kind == "tree",
        _ => false,
    };
    assert!(is_asked_for, "{kind}");
    // Told of the first chunk, and then for each, or for most where they came quicker.
    assert!(reported.len() >= 4, "{kind}: {reported:?}");
    assert_eq!(reported[0].done, 8, "{kind}");
    assert!(
        reported.is_sorted_by(|one, next| one.done < next.done),
        "{kind}: {reported:?}"
    );
    let scored = if kind == "decode" { 0 } else { 3 };
    for progress in &reported {
        assert_eq!(progress.header, answer.header, "{kind}");
        assert_eq!(progress.total, PROMPT + scored, "{kind}");
        assert!(progress.done < progress.total, "{kind}: {progress:?}");
    }
}

#[tokio::test]
async fn a_prefill_longer_than_the_timeout_is_told_of_and_not_late() {
    join_all(KINDS.map(a_long_prefill)).await;
    // One of a single chunk is not told of.
    let mut slow = Slow::opened("chain", 4).await;
    slow.pace.slow(Duration::from_millis(150));
    slow.stream.send(round("chain")).await;
    let part = slow.stream.part().await.expect("a verdict");
    assert!(matches!(part, Part::Verdict(_)), "{part:?}");
}

async fn a_standstill(kind: &str) {
    let mut slow = Slow::opened(kind, PROMPT).await;
    slow.pace.hold();
    let began = Instant::now();
    slow.stream.send(round(kind)).await;
    let late = slow.stream.receive().await.expect_err(kind);
    assert_eq!(late.code(), Code::DeadlineExceeded, "{kind}: {late:?}");
    assert!(began.elapsed() >= TIMEOUT, "{kind}");
    slow.pace.release();
}

#[tokio::test]
async fn an_engine_that_stands_still_makes_its_round_late() {
    join_all(KINDS.map(a_standstill)).await;
}

#[tokio::test]
async fn logits_that_are_nan_fail_the_round() {
    for kind in KINDS {
        let mut slow = Slow::opened(kind, 4).await;
        slow.pace.spoil();
        slow.stream.send(round(kind)).await;
        let failed = slow.stream.receive().await.expect_err(kind);
        let expected = "target model: logits row holds NaN at token 3";
        assert_eq!(
            (failed.code(), failed.message()),
            (Code::Internal, expected),
            "{kind}"
        );
    }
}

/// A verifier reads on while it decodes.
#[tokio::test]
async fn a_close_and_a_second_round_are_noticed_in_the_midst_of_a_round() {
    const TOKENS: u32 = 400;
    for then in [Request::Close(Close {}), decode(1, TIMEOUT)] {
        let closes = matches!(then, Request::Close(_));
        let mut slow = Slow::opened("decode", 4).await;
        slow.pace.slow(Duration::from_millis(10));
        slow.stream.send(decode(TOKENS, 5 * TIMEOUT)).await;
        slow.stream.receive().await.expect("a token");
        slow.stream.send(then).await;
        let ended = loop {
            match slow.stream.receive().await {
                Ok(Reply::Answer(_) | Reply::Progress(_)) => {}
                ended => break ended,
            }
        };
        if closes {
            assert!(matches!(ended, Ok(Reply::Closed(_))), "{ended:?}");
        } else {
            let refused = ended.expect_err("refused");
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().starts_with("round: "), "{refused:?}");
        }
        let monitor = &slow.monitor;
        let is_over = || monitor.sessions().attached + monitor.engine().running == 0;
        eventually("nothing is computed", is_over).await;
        assert_eq!(monitor.sessions().detached, usize::from(!closes));
        let forwards = monitor.engine().forwards;
        assert!(forwards < u64::from(TOKENS), "{forwards} forwards");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_decoding() {
    const TOKENS: u32 = 400;
    let mut slow = Slow::opened("decode", 4).await;
    slow.pace.slow(Duration::from_millis(10));
    slow.stream.send(decode(TOKENS, 5 * TIMEOUT)).await;
    slow.stream.receive().await.expect("a token");
    drop(slow.stream);
    let monitor = &slow.monitor;
    let is_over = || monitor.sessions().attached + monitor.engine().running == 0;
    eventually("nothing remains", is_over).await;
    let forwards = monitor.engine().forwards;
    assert!(forwards < u64::from(TOKENS), "{forwards} forwards");
    assert_eq!(monitor.sessions().detached, 0);
}
