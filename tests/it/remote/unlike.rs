//! Sessions that are unlike one another at one engine, all at once.

use futures_util::future::join_all;
use serde_json::json;
use wire::v1::GenerateRequest;

use super::{Sglang, over, target, verifier_over};
use crate::client::{With, begin, generate, request};
use crate::cluster::{Cluster, draft};
use crate::prompts;

/// Requests that want different numbers of tokens of a row, of different lengths, with one draft token or several.
fn unlike() -> Vec<GenerateRequest> {
    let scored = |request: GenerateRequest, top_logprobs| GenerateRequest {
        logprobs: true,
        top_logprobs,
        ..request
    };
    let ways = |plain: GenerateRequest| {
        let mut cut = plain.clone();
        cut.sampling.get_or_insert_default().top_k = 40;
        [
            plain.clone().draft_len(1),
            plain.clone().draft_len(6).temperature(0.0),
            plain.clone().method("target-only"),
            scored(plain.clone().draft_len(3), 0),
            scored(plain.draft_len(2), 20),
            cut.draft_len(4),
        ]
    };
    let prompts = prompts::mixed(2).into_iter().zip(1..);
    let requests =
        prompts.flat_map(|(prompt, at)| ways(request(&prompt, 12 * at).seed(u64::from(at))));
    requests.collect()
}

/// One in three is a client that leaves. The others' tokens are those of our own engine with the same weights.
#[tokio::test(flavor = "multi_thread")]
async fn unlike_sessions_share_an_engine_and_each_has_its_own_answer() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let own = Cluster::of(draft(), target()).await;
    let asked = unlike()
        .into_iter()
        .enumerate()
        .map(async |(at, requested)| {
            if at % 3 == 2 {
                let mut parts = begin(&over.coordinator, requested.clone()).await;
                parts.message().await.expect("a part");
                drop(parts);
            }
            (
                generate(&over.coordinator, requested.clone()).await,
                requested,
            )
        });
    for (found, requested) in join_all(asked).await {
        let expected = generate(&own.coordinator, requested.clone()).await;
        assert_eq!(found.tokens, expected.tokens, "{requested:?}");
        assert_eq!(found.logprobs.len(), expected.logprobs.len());
        for (found, expected) in found.logprobs.iter().zip(&expected.logprobs) {
            assert_eq!(found.top.len(), expected.top.len());
        }
        let statistics = found.statistics();
        assert_eq!(
            (statistics.retries, found.fallbacks()),
            (0, 0),
            "{requested:?}"
        );
    }
    let most = engine.requests().into_iter().max();
    assert!(most > Some(1), "no two rounds went together");
}

/// A connection that was kept may have ended meanwhile: nobody but the verifier learns of it.
#[tokio::test]
async fn a_connection_that_ended_costs_no_round() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let requested = request("Once upon a time", 24);
    let expected = generate(&over.coordinator, requested.clone()).await;
    engine.close_next(1);
    let found = generate(&over.coordinator, requested).await;
    assert_eq!(engine.left_to_close(), 0);
    assert_eq!(found.tokens, expected.tokens);
    let statistics = found.statistics();
    assert_eq!((statistics.retries, found.fallbacks()), (0, 0));
}

/// Whatever an engine says that its numbers depend on.
#[tokio::test]
async fn engines_that_differ_in_anything_compute_other_numbers() {
    let mut known = Vec::new();
    for said in [
        json!({}),
        json!({ "quantization": "fp8" }),
        json!({ "kv_cache_dtype": "fp8_e5m2" }),
        json!({ "weight_version": "2" }),
        json!({ "dtype": "bfloat16" }),
        json!({ "version": "0.5.24" }),
        json!({ "served_model_name": "other" }),
        json!({ "model_path": "/models/other" }),
    ] {
        let engine = Sglang::start();
        engine.say(said.clone());
        let (_verifier, monitor) = verifier_over(&engine).await;
        let numerics = monitor.description.numerics.clone().expect("numerics");
        assert!(!known.contains(&numerics.weights), "{said}");
        known.push(numerics.weights);
    }
    let (_verifier, again) = verifier_over(&Sglang::start()).await;
    let numerics = again.description.numerics.clone().expect("numerics");
    assert_eq!(numerics.weights, known[0], "the same as the first");
}
