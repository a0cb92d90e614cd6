//! A verifier over an engine elsewhere, which serves the built-in target as SGLang does.

mod replaced;
mod sglang;
mod tenants;
mod unlike;

use std::sync::Arc;

use futures_util::future::join_all;
use ops::process::Process;
use tonic::Code;
use verifier::{RemoteConfig, Verifier, VerifierConfig};
use wire::v1::{FinishReason, GenerateRequest, Origin};

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{self, Service, config, coordinator, draft, drafter, eventually};
use crate::prompts;
use sglang::{Fault, Sglang, target};

fn configured(engine: &Sglang) -> VerifierConfig {
    VerifierConfig {
        remote: RemoteConfig {
            url: engine.url(),
            ..RemoteConfig::default()
        },
        ..VerifierConfig::default()
    }
}

/// A verifier over `engine`, and a look into it.
async fn verifier_over(engine: &Sglang) -> (Service, Arc<Verifier>) {
    let config = configured(engine);
    let loading = config.clone();
    let observer = Arc::new(model::progress::ProgressLines::default());
    let loaded = tokio::task::spawn_blocking(move || verifier::load(&loading, &(observer as _)));
    let loaded = loaded.await.expect("no panic").expect("an engine");
    let process = Process::default();
    let verifier = loaded.start(&config, process.clone()).expect("a verifier");
    let monitor = Arc::clone(&verifier);
    let service = Service::start(process, |listener, stop| verifier.serve(listener, stop)).await;
    (service, monitor)
}

fn is_ready(verifier: &Service) -> bool {
    let conditions = verifier.process.services.conditions();
    conditions
        .iter()
        .all(|(_, condition)| condition.to_string() == "ready")
}

/// All three services, the target in an engine elsewhere.
struct Over {
    coordinator: Service,
    verifier: Service,
    _drafter: Service,
}

async fn over(engine: &Sglang) -> Over {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier_over(engine).await;
    Over {
        coordinator: coordinator(config(&[drafter.url()], &[verifier.url()])).await,
        verifier,
        _drafter: drafter,
    }
}

/// Coupled verification and decoding alone, greedy and drawn, with all that changes a row: the tokens are those of our own
/// engine with the same weights.
#[tokio::test]
async fn answers_over_an_engine_are_those_of_our_own() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let own = cluster::Cluster::of(draft(), target()).await;
    let ways: [fn(GenerateRequest) -> GenerateRequest; 6] = [
        |plain| plain,
        |greedy| greedy.temperature(0.0),
        |alone| alone.method("target-only"),
        |streamed| streamed.temperature(0.0).with("schedule", "stream"),
        |mut cut| {
            let sampling = cut.sampling.get_or_insert_default();
            (sampling.top_p, sampling.temperature) = (Some(0.9), Some(0.8));
            cut
        },
        |mut raised| {
            let sampling = raised.sampling.get_or_insert_default();
            (sampling.top_k, sampling.presence_penalty) = (40, -0.5);
            raised
        },
    ];
    let mut accepted = 0;
    for (index, prompt) in prompts::mixed(4).into_iter().enumerate() {
        for (way, change) in ways.iter().enumerate() {
            let requested = change(request(&prompt, 24).seed(index as u64));
            let expected = generate(&own.coordinator, requested.clone()).await;
            let found = generate(&over.coordinator, requested).await;
            assert_eq!(found.tokens, expected.tokens, "way {way}, {prompt:?}");
            assert_eq!(found.text, expected.text);
            // Equal tokens again are not promised of an engine whose rows vary.
            assert!(found.finished.exact);
            accepted += found.statistics().num_accepted_draft_tokens;
        }
    }
    assert!(accepted > 0, "no draft token was ever accepted");
}

/// Token verification draws otherwise over parts of rows: greedy it is the target's own, drawn it accepts what it should.
#[tokio::test]
async fn rejection_over_an_engine_accepts_and_is_greedy_where_it_should_be() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let own = cluster::Cluster::of(draft(), target()).await;
    for prompt in prompts::mixed(2) {
        let requested = request(&prompt, 24).method("rejection");
        let greedy = requested.clone().temperature(0.0);
        let expected = generate(&own.coordinator, greedy.clone()).await;
        assert_eq!(
            generate(&over.coordinator, greedy).await.tokens,
            expected.tokens
        );
        let drawn = generate(&over.coordinator, requested.ignoring_eos()).await;
        assert_eq!(drawn.tokens.len(), 24);
        assert!(drawn.origins.contains(&Origin::Accepted));
    }
}

#[tokio::test]
async fn log_probabilities_are_the_engines() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let own = cluster::Cluster::of(draft(), target()).await;
    let requested = GenerateRequest {
        logprobs: true,
        top_logprobs: 3,
        prompt_logprobs: true,
        ..request("Once upon a time there was", 16)
    };
    let expected = generate(&own.coordinator, requested.clone()).await;
    let found = generate(&over.coordinator, requested).await;
    for (found, expected) in [
        (found.logprobs, expected.logprobs),
        (found.prompt_logprobs, expected.prompt_logprobs),
    ] {
        assert!(!expected.is_empty());
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found.logprob - expected.logprob).abs() < 1e-4);
            let tokens = |told: &wire::v1::TokenLogprobs| -> Vec<u32> {
                told.top.iter().map(|likely| likely.token_id).collect()
            };
            assert_eq!(tokens(found), tokens(expected));
        }
    }
}

#[tokio::test]
async fn rounds_of_several_requests_share_a_request_to_the_engine() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let prompts = prompts::mixed(8);
    let together = prompts.iter().chain(&prompts).map(|prompt| {
        let requested = request(prompt, 24).ignoring_eos();
        generate(&over.coordinator, requested)
    });
    let together = join_all(together).await;
    assert!(together.iter().all(|answer| answer.tokens.len() == 24));
    let most = engine.requests().into_iter().max();
    assert!(most > Some(1), "no two rounds went together");
}

#[tokio::test]
async fn what_needs_whole_rows_is_refused_by_name() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let mut penalised = request("Once", 4);
    penalised
        .sampling
        .get_or_insert_default()
        .repetition_penalty = Some(1.2);
    let block = request("Once", 4).with("verification", "block");
    let at_coordinator = request("Once", 4).method("rejection");
    let at_coordinator = at_coordinator.with("accept_at", "coordinator");
    for (refused, field) in [
        (penalised, "sampling.repetition_penalty"),
        (block, "settings.verification"),
        (at_coordinator, "settings.accept_at"),
    ] {
        let status = try_generate(&over.coordinator, refused)
            .await
            .expect_err(field);
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(field), "{status:?}");
    }
}

/// A wrong answer is never a token: the verifier is lost for the request, as one that does not answer.
#[tokio::test]
async fn a_hostile_answer_is_a_lost_verifier() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    for (fault, words) in [
        (Fault::NotANumber, "null"),
        (Fault::RowMissing, "rows"),
        (Fault::Unsorted, "after a less likely one"),
    ] {
        engine.set_fault(Some(fault));
        let answer = try_generate(&over.coordinator, request("Once", 8)).await;
        let answer = answer.expect("an answer that fails");
        assert!(answer.tokens.is_empty(), "{fault:?}");
        assert_eq!(answer.finished.reason(), FinishReason::Error);
        let error = &answer.finished.error;
        assert!(error.contains(words), "{fault:?}: {error}");
        engine.set_fault(None);
        assert_eq!(
            generate(&over.coordinator, request("Once", 8))
                .await
                .tokens
                .len(),
            8
        );
    }
}

#[tokio::test]
async fn a_verifier_is_ready_while_its_engine_is() {
    let engine = Sglang::start();
    let (verifier, _monitor) = verifier_over(&engine).await;
    eventually("ready", || is_ready(&verifier)).await;
    engine.set_fault(Some(Fault::Gone));
    eventually("not ready", || !is_ready(&verifier)).await;
    engine.set_fault(None);
    eventually("ready again", || is_ready(&verifier)).await;
}

#[tokio::test]
async fn an_engine_with_another_model_is_refused() {
    let engine = Sglang::start();
    for (fault, setting, words) in [
        (
            Fault::OtherTokenizer,
            "verifier.model",
            "name the model that the engine serves",
        ),
        (Fault::NoTokens, "verifier.remote", "answered 500"),
        (Fault::OtherModel, "verifier.remote", "5000 tokens"),
    ] {
        engine.set_fault(Some(fault));
        let config = configured(&engine);
        let observer = Arc::new(model::progress::ProgressLines::default());
        let loading = move || verifier::load(&config, &(observer as _)).map(drop);
        let loaded = tokio::task::spawn_blocking(loading)
            .await
            .expect("no panic");
        let error = loaded.expect_err("refused").to_string();
        assert!(
            error.starts_with(setting) && error.contains(words),
            "{error}"
        );
    }
}
