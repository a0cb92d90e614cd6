//! Clients that do not read their answers: their requests wait, and nothing else does.

use std::time::Duration;

use model::Model;
use model::source::ServedModel;
use tonic::Streaming;
use wire::v1::generate_request::Prompt;
use wire::v1::{GenerateRequest, GenerateResponse, TokenIds};

use crate::client::{With, begin_unread, collect, generate, request};
use crate::cluster::{Service, config, coordinator, draft, drafter, random_draft, verifier};

/// Tokens of an answer that is not read: many more than all buffers on its way hold.
const LONG: u32 = 2_000;

/// A target that knows nothing, and has a long context.
fn roomy() -> ServedModel<Model> {
    random_draft(|config| config.context_len = 4_096)
}

/// A coordinator whose peers have half a second for an answer.
async fn serving() -> (Service, Service, Service) {
    let (drafter, verifier) = (drafter(draft()).await.0, verifier(roomy()).await.0);
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    config.round_timeout_ms = 500.try_into().expect("not zero");
    (coordinator(config).await, drafter, verifier)
}

fn long() -> GenerateRequest {
    request("Once", LONG).ignoring_eos().method("target-only")
}

/// Forwards of the verifier once it has stopped making them.
async fn forwards_at_rest(verifier: &Service) -> f64 {
    let labels = [("role", "verifier")];
    let forwards = || {
        verifier
            .scrape()
            .sum("outrider_engine_forwards_total", &labels)
    };
    let mut before = forwards();
    loop {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let now = forwards();
        if now > 0.0 && now == before {
            return now;
        }
        before = now;
    }
}

#[tokio::test]
async fn a_verifier_rests_while_nobody_takes_its_tokens_and_goes_on_as_if_nothing_had_been() {
    let (coordinator, _drafter, verifier) = serving().await;
    let unread: Streaming<GenerateResponse> = begin_unread(&coordinator, long()).await;
    let forwards = forwards_at_rest(&verifier).await;
    assert!(
        forwards < f64::from(LONG / 2),
        "{forwards} forwards for a client that reads nothing"
    );
    assert!(forwards >= 256.0, "{forwards}");
    // Longer than a round may take.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let late = collect(unread, |_| {}).await;
    let expected = generate(&coordinator, long()).await;
    assert_eq!(late.tokens, expected.tokens);
    assert_eq!(late.tokens.len(), LONG as usize);
    let statistics = late.statistics();
    assert_eq!((statistics.retries, late.fallbacks()), (0, 0));
    assert!(late.finished.exact && late.finished.reproducible);
}

#[tokio::test]
async fn scores_of_a_prompt_wait_for_their_client_too() {
    let (coordinator, _drafter, verifier) = serving().await;
    let scored = || {
        let ids = (0..3_000).map(|at| 100 + at % 3_000).collect();
        GenerateRequest {
            prompt: Some(Prompt::TokenIds(TokenIds { ids })),
            logprobs: true,
            top_logprobs: 20,
            prompt_logprobs: true,
            ..request("", 1).method("target-only")
        }
    };
    let unread = begin_unread(&coordinator, scored()).await;
    forwards_at_rest(&verifier).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let late = collect(unread, |_| {}).await;
    let expected = generate(&coordinator, scored()).await;
    assert_eq!(late.prompt_logprobs.len(), 2_999);
    assert_eq!(late.prompt_logprobs, expected.prompt_logprobs);
    assert_eq!((late.statistics().retries, late.fallbacks()), (0, 0));
}
