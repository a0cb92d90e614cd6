//! Bad requests and bad peers: refused by name, and nothing breaks.

use tonic::Code;
use tonic::Status;
use wire::v1::generate_request::Prompt;
use wire::v1::{ChatMessage, GenerateRequest, MethodParameters, SamplingParams, TokenIds};

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{Cluster, config, coordinator, draft, drafter, target, verifier};

/// What is said about a request that must be refused.
async fn refused(cluster: &Cluster, request: GenerateRequest) -> Status {
    try_generate(&cluster.coordinator, request)
        .await
        .expect_err("refused")
}

/// A request out of order, the field to be named, and a part of what must be said.
pub(crate) type Case = (GenerateRequest, &'static str, &'static str);

fn base() -> GenerateRequest {
    request("Once upon a time", 8)
}

fn bad_prompts() -> Vec<Case> {
    let ids = |ids| GenerateRequest {
        prompt: Some(Prompt::TokenIds(TokenIds { ids })),
        ..base()
    };
    vec![
        (request("", 8), "prompt", "empty"),
        (
            GenerateRequest {
                prompt: None,
                ..base()
            },
            "prompt",
            "empty",
        ),
        (request(&"word ".repeat(600), 8), "prompt", "512"),
        (ids(vec![]), "prompt", "empty"),
        (ids(vec![4096]), "prompt", "4096"),
        (request("x", 0), "max_tokens", "0"),
        (request("x", 513), "max_tokens", "513"),
    ]
}

fn bad_sampling() -> Vec<Case> {
    let sampling = |change: fn(&mut SamplingParams)| {
        let mut request = base();
        change(request.sampling.get_or_insert_default());
        request
    };
    vec![
        (base().temperature(-1.0), "temperature", "-1"),
        (base().temperature(f32::NAN), "temperature", "NaN"),
        (sampling(|s| s.top_p = Some(0.0)), "top_p", "0"),
        (sampling(|s| s.top_p = Some(1.5)), "top_p", "1.5"),
        (sampling(|s| s.min_p = 2.0), "min_p", "2"),
        (
            sampling(|s| s.repetition_penalty = Some(0.0)),
            "repetition_penalty",
            "0",
        ),
        (
            sampling(|s| s.banned_token_ids = vec![5000]),
            "banned_token_ids",
            "5000",
        ),
        (
            sampling(|s| s.allowed_token_ids = vec![5001]),
            "allowed_token_ids",
            "5001",
        ),
        (
            sampling(|s| s.banned_token_ids = (0..4096).collect()),
            "banned_token_ids",
            "the whole vocabulary is out of range",
        ),
        (
            sampling(|s| {
                s.allowed_token_ids = vec![2];
                s.min_tokens = 3;
            }),
            "min_tokens",
            "3",
        ),
        (
            GenerateRequest {
                stop_token_ids: vec![5002],
                ..base()
            },
            "stop_token_ids",
            "5002",
        ),
    ]
}

/// Quoted in an error they would not fit into its headers.
fn long_names() -> Vec<Case> {
    vec![
        (base().method(&"y".repeat(9_000)), "method", "9000 bytes"),
        (
            GenerateRequest {
                parameters: Some(MethodParameters {
                    rule: Some("y".repeat(20_000)),
                    ..Default::default()
                }),
                ..base()
            },
            "rule",
            "20000 bytes",
        ),
        (
            GenerateRequest {
                model: "y".repeat(30_000),
                ..base()
            },
            "model",
            "30000 bytes, expected at most 256",
        ),
        (
            GenerateRequest {
                prompt: None,
                messages: vec![ChatMessage {
                    role: "y".repeat(257),
                    content: String::new(),
                }],
                ..base()
            },
            "messages",
            "257 bytes",
        ),
    ]
}

fn bad_choices() -> Vec<Case> {
    let stops = |stop: Vec<String>| GenerateRequest { stop, ..base() };
    vec![
        (base().method("nonsense"), "method", "nonsense"),
        (base().draft_len(0), "draft_len", "0"),
        (base().draft_len(65), "draft_len", "65"),
        (
            GenerateRequest {
                model: "other".into(),
                ..base()
            },
            "model",
            "other",
        ),
        (
            GenerateRequest {
                choice: 5000,
                ..base()
            },
            "choice",
            "5000",
        ),
        (stops(vec![String::new()]), "stop", "0 bytes"),
        (stops(vec!["x".into(); 17]), "stop", "17"),
        (stops(vec!["x".repeat(257)]), "stop", "257 bytes"),
        (
            GenerateRequest {
                stop_token_ids: vec![1; 63],
                ..base()
            },
            "stop_token_ids",
            "63",
        ),
        (
            GenerateRequest {
                timeout_ms: 900_000,
                ..base()
            },
            "timeout_ms",
            "900000",
        ),
        (
            GenerateRequest {
                logprobs: true,
                ..base()
            },
            "logprobs",
            "version",
        ),
        (
            GenerateRequest {
                accept_at: 7,
                ..base()
            },
            "accept_at",
            "7 is no place to decide at, expected 0 to 2",
        ),
        (
            GenerateRequest { plan: 99, ..base() },
            "plan",
            "99 is no plan, expected 0 to 7",
        ),
        (
            GenerateRequest {
                target: Some(wire::v1::TargetDistribution {
                    kind: 9,
                    ..Default::default()
                }),
                ..base()
            },
            "target.kind",
            "9 is no kind of target distribution, expected 1 to 3",
        ),
        (
            GenerateRequest {
                drafting: 9,
                ..base()
            },
            "drafting",
            "expected 0 to 3",
        ),
    ]
}

#[tokio::test]
async fn each_bad_field_is_named_with_its_value_and_limit() {
    let cluster = Cluster::start(draft()).await;
    let cases = [bad_prompts(), bad_sampling(), long_names(), bad_choices()].concat();
    for (request, field, part) in cases {
        let status = refused(&cluster, request).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        let message = status.message();
        assert!(
            message.split(':').next() == Some(field) && message.contains(part),
            "{field}: {message}"
        );
    }
    // Nothing was lost by it.
    assert_eq!(
        generate(&cluster.coordinator, base().ignoring_eos())
            .await
            .tokens
            .len(),
        8
    );
}

#[tokio::test]
async fn the_whole_context_can_be_used_and_no_more() {
    let cluster = Cluster::start(draft()).await;
    let prompt: Vec<u32> = std::iter::once(1).chain((0..99).map(|i| 300 + i)).collect();
    let asked = |max_tokens| GenerateRequest {
        prompt: Some(Prompt::TokenIds(TokenIds {
            ids: prompt.clone(),
        })),
        ..request("", max_tokens).ignoring_eos()
    };
    assert_eq!(
        generate(&cluster.coordinator, asked(412))
            .await
            .tokens
            .len(),
        412
    );
    let status = refused(&cluster, asked(413)).await;
    assert!(
        status.message().contains("1 to 412"),
        "{}",
        status.message()
    );
}

#[tokio::test]
async fn stop_strings_end_the_text_before_them() {
    let cluster = Cluster::start(draft()).await;
    let whole = generate(&cluster.coordinator, request("Once upon a time", 80)).await;
    let words: Vec<&str> = whole.text.split_whitespace().collect();
    let stop = format!("{} {}", words[4], words[5]);
    let at = whole.text.find(&stop).expect("in the text");
    for method in ["coupled", "target-only", "draft-only"] {
        let asked = request("Once upon a time", 80).method(method);
        let free = generate(&cluster.coordinator, asked.clone()).await;
        // Reports must cope with a round whose last tokens are cut off.
        let stopped = GenerateRequest {
            stop: vec![stop.clone()],
            report_rounds: true,
            ..asked
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
        let asked = request("Once upon a time", 40).seed(seed).draft_len(8);
        let whole = generate(&cluster.coordinator, asked.clone()).await;
        let first = whole
            .text
            .split_whitespace()
            .next()
            .expect("a word")
            .to_owned();
        let stopped = GenerateRequest {
            stop: vec![first],
            report_rounds: true,
            ..asked
        };
        let answer = generate(&cluster.coordinator, stopped).await;
        assert_eq!(answer.finished.reason(), wire::v1::FinishReason::Stop);
        assert!(answer.rounds.iter().all(|round| round.base_len == 0));
    }
}

#[tokio::test]
async fn end_tokens_count_and_have_no_text() {
    let cluster = Cluster::start(draft()).await;
    let asked = request("Question: What is 2 + 3?\nAnswer:", 100).temperature(0.0);
    let answer = generate(&cluster.coordinator, asked).await;
    assert_eq!(answer.finished.reason(), wire::v1::FinishReason::Stop);
    assert_eq!(answer.tokens.last(), Some(&2));
    assert!(!answer.text.contains("</s>"), "{}", answer.text);
}

#[tokio::test]
async fn mismatched_vocabularies_fail_at_connect_with_a_clear_message() {
    let mut stranger = draft();
    stranger.vocab_fingerprint = [9; 32];
    let (drafter, _) = drafter(stranger).await;
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let answer = generate(&coordinator, request("x", 8)).await;
    let statistics = answer.finished.speculation.expect("statistics");
    let reason = &statistics.fallbacks[0].reason;
    assert!(
        reason.contains("vocabularies differ") && reason.contains("09090909"),
        "{reason}"
    );
    assert_eq!(answer.finished.effective_method, "target-only");
    let draft_only = try_generate(&coordinator, request("x", 8).method("draft-only")).await;
    let finished = draft_only.expect("begun").finished;
    assert!(
        finished.error.contains("vocabularies differ"),
        "{}",
        finished.error
    );
}

#[tokio::test]
async fn without_any_verifier_the_request_is_refused_at_once() {
    let nobody = "http://127.0.0.1:9".to_owned();
    let coordinator = coordinator(config(&[], &[nobody])).await;
    let status = try_generate(&coordinator, request("x", 8))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status.message().contains("verifier") && status.message().contains("refused"),
        "{}",
        status.message()
    );
    // Where the peers are is for operators, whom the log tells.
    assert!(!status.message().contains("127.0.0.1"));
}

#[tokio::test]
async fn more_requests_than_admitted_are_told_when_to_come_back() {
    use tonic_types::StatusExt;
    let (verifier, _) = verifier(target()).await;
    let mut config = config(&[], &[verifier.url()]);
    config.max_requests = 1.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let long = request("Once upon a time", 400).ignoring_eos();
    let running = crate::cluster::client(&coordinator)
        .generate(long)
        .await
        .expect("admitted");
    let status = try_generate(&coordinator, request("x", 8))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(
        status
            .get_details_retry_info()
            .expect("details")
            .retry_delay
            .is_some()
    );
    drop(running);
}
