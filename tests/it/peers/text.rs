//! The end of an answer, and how long it may take.

use std::time::{Duration, Instant};

use tonic::{Code, Request};
use wire::v1::FinishReason;
use wire::v1::generate_response::Part;

use super::{MS, paced_verifier};
use crate::client::{With, generate, request};
use crate::cluster::{Cluster, client, config, coordinator, draft, drafter, target, verifier};
use crate::paced::Pace;
use crate::tampering::{Mode, Tampering};

/// All who come before the tokenizer wait for one and the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_herd_of_requests_fetches_one_tokenizer() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let (drafter, verifier) = (drafter.address, verifier.address);
    let (tampering, url) = Tampering::start(Mode::LateTokenizer, drafter, verifier).await;
    let peers = std::slice::from_ref(&url);
    let coordinator = coordinator(config(peers, peers)).await;
    let asked = |seed| generate(&coordinator, request("Once upon a time", 4).seed(seed));
    let answers = futures_util::future::join_all((0..12).map(asked)).await;
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
    let asked = request("Once upon a time", 12).ignoring_eos();
    let plain = generate(&cluster.coordinator, asked.clone()).await;
    let last: String = plain.text.chars().rev().take(2).collect();
    let last: String = last.chars().rev().collect();
    let mut held = asked.clone();
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
    let mut asked = Request::new(request("Once upon a time", 400).ignoring_eos());
    asked.set_timeout(Duration::from_millis(600));
    let began = Instant::now();
    let parts = client(&coordinator).generate(asked).await;
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

/// The migrations of three requests that move once each are three.
#[tokio::test(flavor = "multi_thread")]
async fn each_move_is_counted_once() {
    use crate::relay::Relay;
    let pace = Pace::default();
    let first = paced_verifier(&pace, target(), |_| {}).await;
    let second = paced_verifier(&pace, target(), |_| {}).await;
    // Answers are under way for long enough to be moved.
    pace.slow(MS * 10);
    let relays = [
        Relay::start(first.address).await,
        Relay::start(second.address).await,
    ];
    let urls = relays.clone().map(|relay| relay.url());
    let counted = super::Counted::start(config(&[], &urls)).await;
    let asked = request("Once upon a time", 60).ignoring_eos();
    let mut told = 0;
    for _ in 0..4 {
        let answer = crate::client::with_fault(&counted.service, asked.clone(), 5, || {
            relays[0].lead_to(None);
        })
        .await;
        relays[0].lead_to(Some(first.address));
        // Back, whence it may have come.
        let answer_back = crate::client::with_fault(&counted.service, asked.clone(), 5, || {
            relays[1].lead_to(None);
        })
        .await;
        relays[1].lead_to(Some(second.address));
        for answer in [answer, answer_back] {
            told += answer.finished.speculation.expect("statistics").migrations;
        }
    }
    assert!(told > 0, "nothing moved");
    assert_eq!(
        counted.count("outrider_migrations_total", &[]),
        f64::from(told)
    );
}
