//! What clients are told, and operators.

use std::time::Instant;

use wire::v1::{FinishReason, ListModelsRequest};

use super::{MS, ms};
use crate::client::{With, generate, request, with_fault};
use crate::cluster::{client, config, coordinator, draft, drafter_with, silent, target, verifier};
use crate::relay::Relay;

#[tokio::test(flavor = "multi_thread")]
async fn no_address_stands_in_what_a_client_reads() {
    let (service, _) = verifier(target()).await;
    let relay = Relay::start(service.address).await;
    let mut config = config(&["http://127.0.0.1:9".to_owned()], &[relay.url()]);
    config.verifier_retries = 1;
    let coordinator = coordinator(config).await;
    let requested = request("Once upon a time", 300).ignoring_eos();
    let answer = with_fault(&coordinator, requested, 5, || relay.lead_to(None)).await;
    assert_eq!(answer.finished.reason(), FinishReason::Error);
    assert_eq!(answer.fallbacks(), 1);
    let said = format!("{:?}", answer.finished);
    assert!(!said.contains("127.0.0.1"), "{said}");
    assert!(answer.finished.error.starts_with("verifier lost"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_model_whose_context_is_full_is_counted_as_that() {
    let (verifier, _) = verifier(target()).await;
    let (drafter, _) = drafter_with(draft(), |config| config.engine.kv_tokens = 128).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let requested = request("Once upon a time", 200).ignoring_eos();
    let answer = generate(&coordinator, requested).await;
    assert_eq!(answer.tokens.len(), 200);
    // Now its context fills up, now the prompt is longer than it.
    let long = request(&"The cat sat on the mat. ".repeat(20), 8).ignoring_eos();
    let after = generate(&coordinator, long).await;
    let lost = (answer.fallbacks() + after.fallbacks()) as f64;
    assert!(
        answer.fallbacks() > 0 && after.fallbacks() > 0,
        "there was room"
    );
    let reason = &after.statistics().fallbacks[0].reason;
    assert!(reason.contains("context of 64 tokens is full"), "{reason}");
    let scrape = coordinator.scrape();
    let fallbacks = |reason| scrape.sum("outrider_fallbacks_total", &[("reason", reason)]);
    let counted = ["context_full", "malformed", "refused"].map(fallbacks);
    assert_eq!(counted, [lost, 0.0, 0.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_models_does_not_wait_for_the_silent() {
    let (verifier, _) = verifier(target()).await;
    let mute = silent().await;
    let mut config = config(std::slice::from_ref(&mute.2), &[verifier.url()]);
    config.channel.connect_timeout_ms = 20_000;
    config.round_timeout_ms = ms(20_000);
    let mut others = config.models[0].clone();
    for index in 0..4 {
        others.name = format!("other {index}");
        others.verifiers = vec![mute.2.clone()];
        config.models.push(others.clone());
    }
    let coordinator = coordinator(config).await;
    let began = Instant::now();
    let listed = client(&coordinator).list_models(ListModelsRequest {}).await;
    let models = listed.expect("a list").into_inner().models;
    assert!(began.elapsed() < MS * 5_000, "{:?}", began.elapsed());
    assert_eq!(models.len(), 5);
    assert_eq!(models[0].name, "default");
    assert!(models[0].verifier.is_some() && models[0].drafter.is_none());
    assert!(models[1].verifier.is_none());
}
