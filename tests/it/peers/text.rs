//! The end of an answer, and how long it may take.

use std::time::{Duration, Instant};

use tonic::{Code, Request};
use wire::v1::FinishReason;
use wire::v1::generate_response::Part;

use super::{MS, paced_verifier};
use crate::client::{With, begin, collect, generate, request};
use crate::cluster::{Cluster, client, config, coordinator, draft, pair, target};
use crate::paced::Pace;
use crate::relay::Relay;
use crate::tampering::{Mode, Tampering};

/// All who come before the tokenizer wait for one and the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_herd_of_requests_fetches_one_tokenizer() {
    let (drafter, verifier) = pair().await;
    let (drafter, verifier) = (drafter.address, verifier.address);
    let (tampering, url) = Tampering::start(Mode::LateTokenizer, drafter, verifier).await;
    let peers = std::slice::from_ref(&url);
    let coordinator = coordinator(config(peers, peers)).await;
    let requested = |seed| generate(&coordinator, request("Once upon a time", 4).seed(seed));
    let answers = futures_util::future::join_all((0..12).map(requested)).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.finished.error.is_empty())
    );
    assert_eq!(tampering.tokenizers(), 1);
}

/// Text that may be the beginning of a stop string is held back: it comes when the answer ends.
#[tokio::test]
async fn held_text_comes_when_an_answer_ends_by_length_or_by_an_end_token() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 12).ignoring_eos();
    let plain = generate(&cluster.coordinator, requested.clone()).await;
    let last: String = plain.text.chars().rev().take(2).collect();
    let last: String = last.chars().rev().collect();
    let mut held = requested.clone();
    held.stop = vec![format!("{last}\u{1}never")];
    let answer = generate(&cluster.coordinator, held.clone()).await;
    assert_eq!(answer.finished.reason(), FinishReason::Length);
    assert_eq!(answer.text, plain.text);
    // The same output, ended by one of its own tokens.
    let end = *plain.tokens.last().expect("tokens");
    held.max_tokens = Some(40);
    held.stop_token_ids = vec![end];
    let mut ended = held.clone();
    ended.stop.clear();
    let ended = generate(&cluster.coordinator, ended).await;
    held.stop = vec![format!("{}\u{1}never", tail(&ended.text))];
    let answer = generate(&cluster.coordinator, held).await;
    assert_eq!(answer.finished.reason(), FinishReason::Stop);
    assert_eq!((answer.text, answer.tokens), (ended.text, ended.tokens));
}

fn tail(text: &str) -> String {
    let at = text.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
    text[at..].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_timeout_ends_a_request_that_is_under_way() {
    let pace = Pace::default();
    let verifier = paced_verifier(&pace, target(), |_| {}).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    generate(&coordinator, request("Once upon a time", 4)).await;
    pace.slow(MS * 50);
    let mut requested = Request::new(request("Once upon a time", 400).ignoring_eos());
    requested.set_timeout(Duration::from_millis(600));
    let began = Instant::now();
    let parts = client(&coordinator).generate(requested).await;
    let mut parts = parts.expect("in order").into_inner();
    let mut finished = None;
    while let Ok(Some(part)) = parts.message().await {
        if let Some(Part::Finished(end)) = part.part {
            finished = Some(end);
        }
    }
    let finished = finished.expect("an end that says why");
    assert_eq!(finished.error_code, Code::DeadlineExceeded as u32);
    assert!(began.elapsed() < MS * 5_000);
}

/// An answer that moves from verifier to verifier moves as often as it says, and as the metrics count.
#[tokio::test(flavor = "multi_thread")]
async fn each_move_is_counted_once() {
    let pace = Pace::default();
    let verifiers = [
        paced_verifier(&pace, target(), |_| {}).await,
        paced_verifier(&pace, target(), |_| {}).await,
    ];
    // An answer is under way for long enough to be moved.
    pace.slow(MS * 10);
    let relays = [
        Relay::start(verifiers[0].address).await,
        Relay::start(verifiers[1].address).await,
    ];
    let urls = relays.clone().map(|relay| relay.url());
    let coordinator = coordinator(config(&[], &urls)).await;
    let requested = request("Once upon a time", 70).ignoring_eos();
    let parts = begin(&coordinator, requested).await;
    // Wherever it began, it is moved by at least two of these.
    let mut losses = [(5, 0), (25, 1), (45, 0)].into_iter().peekable();
    let answer = collect(parts, |tokens| {
        if let Some((_, lost)) = losses.next_if(|&(after, _)| tokens >= after) {
            relays[1 - lost].lead_to(Some(verifiers[1 - lost].address));
            relays[lost].lead_to(None);
        }
    });
    let answer = answer.await;
    let moves = answer.statistics();
    assert!(moves.migrations >= 2, "{moves:?}");
    let scrape = coordinator.scrape();
    let migrations = scrape.sum("outrider_migrations_total", &[]);
    assert_eq!(migrations, f64::from(moves.migrations));
    let retries = scrape.sum("outrider_retries_total", &[("peer", "verifier")]);
    assert!(retries > 0.0 && retries >= f64::from(moves.retries));
}
