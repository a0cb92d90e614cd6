//! Rounds that take long: told of while they go on, and late when they do not.

use std::time::{Duration, Instant};

use tonic::Code;
use wire::v1::verify_reply::Reply;
use wire::v1::verify_request::Request;
use wire::v1::{AcceptAt, DecodeRound, Open, Progress, TokenTree, VerifyRound};

use crate::world::{Stream, World, with_header};

/// A chunk of the prefill takes a small part of the round's time, all of it twice the time.
const PACE: Duration = Duration::from_millis(40);
const TIMEOUT_MS: u32 = 1_000;
/// Fifty chunks of eight.
const PROMPT: usize = 400;

fn drafts(parents: &[i32]) -> TokenTree {
    TokenTree {
        token_ids: vec![1, 2, 3],
        parents: parents.to_vec(),
    }
}

/// The kinds of rounds, each with whether the coordinator decides.
fn rounds() -> [(&'static str, bool, Request); 4] {
    let block = |parents: &[i32]| VerifyRound {
        drafts: Some(drafts(parents)),
        ..Default::default()
    };
    let decode = DecodeRound {
        max_tokens: 2,
        header: None,
    };
    let round = |round| Request::Round(with_header(round, TIMEOUT_MS));
    [
        ("chain", false, round(block(&[]))),
        ("tree", false, round(block(&[-1, -1, 0]))),
        ("slices", true, round(block(&[]))),
        (
            "decode",
            false,
            Request::Decode(with_header(decode, TIMEOUT_MS)),
        ),
    ]
}

/// A session with a long prompt, whose rounds the verifier or the coordinator decides.
async fn opened(world: &World, at_coordinator: bool) -> Stream {
    let decides = |open: &mut Open| {
        if at_coordinator {
            open.accept_at = AcceptAt::Coordinator.into();
        }
    };
    world.open(PROMPT, decides).await
}

#[tokio::test]
async fn a_prefill_longer_than_the_timeout_is_told_of_and_not_late() {
    for (kind, at_coordinator, request) in rounds() {
        let world = World::start().await;
        let mut stream = opened(&world, at_coordinator).await;
        world.pace(PACE);
        let began = Instant::now();
        stream.send(request).await;
        let mut told: Vec<Progress> = Vec::new();
        let reply = loop {
            match stream.receive().await.expect(kind) {
                Reply::Progress(progress) => told.push(progress),
                other => break other,
            }
        };
        assert!(began.elapsed() > 2 * Duration::from_millis(TIMEOUT_MS.into()));
        let answers = match (kind, &reply) {
            ("slices", Reply::Slice(slice)) => slice.header,
            ("decode", Reply::Decoded(decoded)) => decoded.header,
            ("chain" | "tree", Reply::Verdict(verdict)) => verdict.header,
            other => panic!("{kind}: {other:?}"),
        };
        // Told of the first chunk, and then for each, or for most where they came quicker.
        assert!(told.len() >= 4, "{kind}: {told:?}");
        assert_eq!(told[0].done, 8, "{kind}");
        assert!(
            told.is_sorted_by(|one, next| one.done < next.done),
            "{kind}: {told:?}"
        );
        let scored = if kind == "decode" { 0 } else { 3 };
        for progress in &told {
            assert_eq!(progress.header, answers, "{kind}");
            assert_eq!(progress.total, PROMPT as u32 + scored, "{kind}");
            assert!(progress.done < progress.total, "{kind}: {progress:?}");
        }
    }
}

#[tokio::test]
async fn an_engine_that_stands_still_makes_its_round_late() {
    for (kind, at_coordinator, request) in rounds() {
        let world = World::start().await;
        let mut stream = opened(&world, at_coordinator).await;
        world.pace(Duration::from_millis(3_000));
        let began = Instant::now();
        stream.send(request).await;
        let late = stream.receive().await.expect_err(kind);
        assert_eq!(late.code(), Code::DeadlineExceeded, "{kind}: {late:?}");
        assert!(began.elapsed() < Duration::from_millis(2_500), "{kind}");
        world.pace(Duration::ZERO);
    }
}

#[tokio::test]
async fn a_prefill_of_one_chunk_is_not_told_of() {
    let world = World::start().await;
    let mut stream = world.open(4, |_| {}).await;
    world.pace(Duration::from_millis(150));
    let (_, _, request) = rounds().into_iter().next().expect("a kind");
    stream.send(request).await;
    let reply = stream.receive().await.expect("a verdict");
    assert!(matches!(reply, Reply::Verdict(_)), "{reply:?}");
}
