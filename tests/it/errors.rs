//! Bad requests and bad peers: refused by name, and nothing breaks.

use std::time::{Duration, Instant};

use coordinator::CoordinatorConfig;
use tonic::Code;
use tonic_types::StatusExt;
use wire::v1::generate_request::Prompt;
use wire::v1::{ChatMessage, GenerateRequest, SamplingParams, TokenIds};

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{
    Cluster, PATIENCE, Service, client, config, coordinator, draft, drafter, target, verifier,
};
use crate::metrics::Scrape;
use crate::relay::Relay;

/// What must be said of a request that is out of order, `field | part | part`, and the request.
pub(crate) type Case = (&'static str, GenerateRequest);

/// A request in order but for `change`.
pub(crate) fn case(expected: &'static str, change: impl FnOnce(&mut GenerateRequest)) -> Case {
    let mut requested = request("Once upon a time", 8);
    change(&mut requested);
    (expected, requested)
}

/// Checks that each is refused by the name of its field.
pub(crate) async fn each_refused(coordinator: &Service, cases: Vec<Case>) {
    for (expected, requested) in cases {
        let refused = try_generate(coordinator, requested).await;
        let status = refused.expect_err(expected);
        assert_eq!(status.code(), Code::InvalidArgument, "{expected}");
        let mut parts = expected.split(" | ");
        let named = status.message().split(':').next() == parts.next();
        let said = parts.all(|part| status.message().contains(part));
        assert!(named && said, "{expected}: {status:?}");
    }
}

fn ids(ids: Vec<u32>) -> Prompt {
    Prompt::TokenIds(TokenIds { ids })
}

/// One of each kind: what of prompts, limits, sampling and axes is refused is tested where that is decided.
fn bad_fields() -> Vec<Case> {
    let text = |text: &str| Some(Prompt::Text(text.to_owned()));
    let sampling = |expected, change: fn(&mut SamplingParams)| {
        case(expected, |r| change(r.sampling.get_or_insert_default()))
    };
    vec![
        case("prompt | empty", |r| r.prompt = None),
        case("prompt | empty", |r| r.prompt = Some(ids(vec![]))),
        case("prompt | 512", |r| r.prompt = text(&"word ".repeat(600))),
        case("prompt | 4096", |r| r.prompt = Some(ids(vec![4096]))),
        case("max_tokens | 513", |r| r.max_tokens = Some(513)),
        sampling("min_tokens | 9 | max_tokens | 8", |s| s.min_tokens = 9),
        sampling("temperature | NaN", |s| s.temperature = Some(f32::NAN)),
        sampling("allowed_token_ids | 5001", |s| {
            s.allowed_token_ids = vec![5001];
        }),
        case("stop_token_ids | 5002", |r| r.stop_token_ids = vec![5002]),
        case("stop_token_ids | 63", |r| r.stop_token_ids = vec![1; 63]),
        case("stop | 17", |r| r.stop = vec!["x".into(); 17]),
        case("method | nonsense", |r| {
            "nonsense".clone_into(&mut r.method);
        }),
        case("model | other", |r| "other".clone_into(&mut r.model)),
        case("settings.draft_len | 65", |r| r.set("draft_len", 65)),
        case("choice | 5000", |r| r.choice = 5000),
        case("tenant | 257 bytes", |r| r.tenant = "t".repeat(257)),
        case("timeout_ms | 900000", |r| r.timeout_ms = 900_000),
        case("top_logprobs | 21 | 20", |r| {
            (r.logprobs, r.top_logprobs) = (true, 21);
        }),
        case("top_logprobs | set logprobs", |r| r.top_logprobs = 1),
        case("prompt_logprobs | set logprobs", |r| {
            r.prompt_logprobs = true;
        }),
        case("max_tokens | 0 | 1 to", |r| r.max_tokens = Some(0)),
        case("logprobs | 'draft-only'", |r| {
            (r.logprobs, r.method) = (true, "draft-only".to_owned());
        }),
        case("logprobs | accept_at", |r| {
            r.logprobs = true;
            r.set("accept_at", "coordinator");
        }),
        case("settings.accept_at | 7", |r| r.set("accept_at", 7)),
        case("settings.plan | 99", |r| r.set("plan", 99)),
        case("settings.drafting | 9", |r| r.set("drafting", 9)),
        // Quoted in an error these would not fit into its headers.
        case("method | 9000 bytes", |r| r.method = "y".repeat(9_000)),
        case("model | 30000 bytes | 256", |r| {
            r.model = "y".repeat(30_000);
        }),
        case("settings.rule | 300 bytes | 256", |r| {
            r.set("rule", "y".repeat(300));
        }),
        case("messages | 257 bytes", |r| {
            let (role, content) = ("y".repeat(257), String::new());
            (r.prompt, r.messages) = (
                None,
                vec![ChatMessage {
                    role,
                    content,
                    ..Default::default()
                }],
            );
        }),
    ]
}

#[tokio::test]
async fn each_bad_field_is_named_with_its_value_and_limit() {
    let cluster = Cluster::start(draft()).await;
    each_refused(&cluster.coordinator, bad_fields()).await;
    // Nothing was lost by it.
    let requested = request("Once upon a time", 8).ignoring_eos();
    assert_eq!(
        generate(&cluster.coordinator, requested).await.tokens.len(),
        8
    );
}

#[tokio::test]
async fn the_whole_context_can_be_used_and_no_more() {
    let cluster = Cluster::start(draft()).await;
    let prompt: Vec<u32> = std::iter::once(1).chain((0..99).map(|i| 300 + i)).collect();
    let requested = |max_tokens| GenerateRequest {
        prompt: Some(ids(prompt.clone())),
        ..request("", max_tokens).ignoring_eos()
    };
    let whole = generate(&cluster.coordinator, requested(412)).await;
    assert_eq!(whole.tokens.len(), 412);
    let too_many = vec![("max_tokens | 1 to 412", requested(413))];
    each_refused(&cluster.coordinator, too_many).await;
}

#[tokio::test]
async fn stop_strings_end_the_text_before_them() {
    let cluster = Cluster::start(draft()).await;
    let whole = generate(&cluster.coordinator, request("Once upon a time", 80)).await;
    let words: Vec<&str> = whole.text.split_whitespace().collect();
    let stop = format!("{} {}", words[4], words[5]);
    let at = whole.text.find(&stop).expect("in the text");
    for method in ["coupled", "target-only", "draft-only"] {
        let requested = request("Once upon a time", 80).method(method);
        let free = generate(&cluster.coordinator, requested.clone()).await;
        // Reports must cope with a round whose last tokens are cut off.
        let stopped = GenerateRequest {
            stop: vec![stop.clone()],
            report_rounds: true,
            ..requested
        };
        let answer = generate(&cluster.coordinator, stopped).await;
        assert!(free.tokens.starts_with(&answer.tokens));
        if method != "draft-only" {
            assert_eq!(answer.text, whole.text[..at]);
            assert_eq!(answer.finished.reason(), wire::v1::FinishReason::Stop);
            assert!(answer.tokens.len() < whole.tokens.len());
        }
        assert!(!answer.text.contains(&stop));
        assert!(answer.text.starts_with(&answer.pieces));
    }
}

#[tokio::test]
async fn a_stop_in_the_first_round_is_reported_like_any_other() {
    let cluster = Cluster::start(draft()).await;
    for seed in 0..6 {
        let requested = request("Once upon a time", 40).seed(seed).draft_len(8);
        let whole = generate(&cluster.coordinator, requested.clone()).await;
        let first = whole.text.split_whitespace().next().expect("a word");
        let stopped = GenerateRequest {
            stop: vec![first.to_owned()],
            report_rounds: true,
            ..requested
        };
        let answer = generate(&cluster.coordinator, stopped).await;
        assert_eq!(answer.finished.reason(), wire::v1::FinishReason::Stop);
        assert!(answer.rounds.iter().all(|round| round.base_len == 0));
    }
}

#[tokio::test]
async fn end_tokens_count_and_have_no_text() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Question: What is 2 + 3?\nAnswer:", 100).temperature(0.0);
    let answer = generate(&cluster.coordinator, requested).await;
    assert_eq!(answer.finished.reason(), wire::v1::FinishReason::Stop);
    assert_eq!(answer.tokens.last(), Some(&2));
    assert!(!answer.text.contains("</s>"), "{}", answer.text);
}

#[tokio::test]
async fn models_of_other_kinds_fail_at_connect_with_a_clear_message() {
    let mut stranger = draft();
    // It reads the prompt with an encoder.
    stranger.outline.decoder_start_token_id = Some(0);
    let (drafter, _) = drafter(stranger).await;
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    // The misfit is found before the first request, and no request reports a lost drafter.
    coordinator.meets_misfit().await;
    let [warning] = &coordinator.process.warnings.all()[..] else {
        panic!("readiness has no word about it");
    };
    for part in ["no drafter of model 'default' fits", "encoder-decoder"] {
        assert!(warning.contains(part), "{warning}");
    }
    let answer = generate(&coordinator, request("x", 8)).await;
    assert_eq!(answer.fallbacks(), 0);
    assert_eq!(answer.finished.effective_method, "target-only");
    for method in ["draft-only", "token-cascade"] {
        let refused = try_generate(&coordinator, request("x", 8).method(method)).await;
        let said = refused.expect_err("refused").message().to_owned();
        for part in [
            "method: ",
            method,
            "encoder-decoder",
            "must both be, or neither",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}

/// A drafter that is started anew with a model that fits is found.
#[tokio::test]
async fn a_misfit_is_looked_at_again() {
    let mut stranger = draft();
    // It reads the prompt with an encoder.
    stranger.outline.decoder_start_token_id = Some(0);
    let (misfit, _) = drafter(stranger).await;
    let (verifier, _) = verifier(target()).await;
    let (fitting, _) = drafter(draft()).await;
    let relay = Relay::start(misfit.address).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let requested = || request("Once upon a time", 24).draft_len(4);
    let method = async || {
        let answer = generate(&coordinator, requested()).await;
        answer.finished.effective_method
    };
    assert_eq!(method().await, "target-only");
    relay.lead_to(Some(fitting.address));
    let limit = Instant::now() + PATIENCE;
    while method().await != "coupled" {
        assert!(Instant::now() < limit, "nobody looks again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(coordinator.process.warnings.all(), [""; 0]);
}

#[tokio::test]
async fn a_coordinator_is_ready_while_a_verifier_answers() {
    let (verifier, _) = verifier(target()).await;
    let relay = Relay::start(verifier.address).await;
    let coordinator = coordinator(CoordinatorConfig {
        unready_after_ms: 300.try_into().expect("not zero"),
        ..config(&[], &[relay.url()])
    })
    .await;
    let is_ready =
        |scrape: &Scrape| scrape.value("outrider_ready", &[("service", "outrider.v1.Coordinator")]);
    coordinator
        .shows("ready", |scrape| is_ready(scrape) == 1.0)
        .await;
    relay.lead_to(None);
    coordinator
        .shows("not ready", |scrape| is_ready(scrape) == 0.0)
        .await;
    let conditions = coordinator.process.services.conditions();
    assert_eq!(
        conditions[0].1.to_string(),
        "waiting for a verifier or its engine"
    );
    relay.lead_to(Some(verifier.address));
    coordinator
        .shows("ready again", |scrape| is_ready(scrape) == 1.0)
        .await;
}

#[tokio::test]
async fn without_any_verifier_the_request_is_refused_at_once() {
    let nobody = "http://127.0.0.1:9".to_owned();
    let coordinator = coordinator(config(&[], &[nobody])).await;
    let refused = try_generate(&coordinator, request("x", 8)).await;
    let status = refused.expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
    let said = status.message();
    assert!(
        said.contains("verifier") && said.contains("refused"),
        "{said}"
    );
    // Where the peers are is for operators, whom the log tells.
    assert!(!said.contains("127.0.0.1"));
}

#[tokio::test]
async fn more_requests_than_admitted_are_told_when_to_come_back() {
    let (verifier, _) = verifier(target()).await;
    let mut config = config(&[], &[verifier.url()]);
    config.max_requests = 1.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let long = request("Once upon a time", 400).ignoring_eos();
    let running = client(&coordinator).generate(long).await;
    let refused = try_generate(&coordinator, request("x", 8)).await;
    let status = refused.expect_err("refused");
    assert_eq!(status.code(), Code::ResourceExhausted);
    let reported = status.get_details_retry_info().expect("details");
    assert!(reported.retry_delay.is_some());
    drop(running.expect("admitted"));
}
