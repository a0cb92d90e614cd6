//! What engines say of themselves, as it was recorded, and what follows.

use engines::{Ids, RemoteEngine, ScoreRequest, ScoredSequence, ScoringError};
use serde_json::{Value, json};

use crate::model::VOCAB;
use crate::recorded::recorded;
use crate::stub::{Request, Response, Stub, soon};

/// The recorded answer to a question.
fn as_recorded(name: &str) -> Response {
    let recorded = recorded(name);
    Response {
        status: recorded["status"].as_u64().expect("a status") as u16,
        ..Response::json(&recorded["said"])
    }
}

fn sglang(request: &Request) -> Response {
    match request.path.as_str() {
        "/server_info" => as_recorded("sglang-server_info"),
        "/health" => Response::bytes(""),
        "/generate" if request.body["text"].is_string() => {
            let read = json!([[null, 1, null], [-0.5, 7, null]]);
            Response::json(&json!({"meta_info": {"input_token_logprobs": read}}))
        }
        _ => as_recorded("sglang-an-id-out-of-range"),
    }
}

/// A vLLM whose runner is V2 or V1, and which gives at most so many most likely tokens.
fn vllm(is_v2: bool, most: u64) -> impl Fn(usize, &Request) -> Response + Send + 'static {
    move |_, request| match request.path.as_str() {
        "/version" => as_recorded("vllm-version"),
        "/v1/models" => as_recorded("vllm-v1-models"),
        "/tokenize" => {
            assert_eq!(request.body["model"], "default");
            Response::json(&json!({"count": 2, "max_model_len": 512, "tokens": [1, 7]}))
        }
        "/inference/v1/generate" => {
            let params = &request.body["sampling_params"];
            if !is_v2 && params["prompt_logprob_token_ids"].is_array() {
                return as_recorded("vllm-generate-with-given-tokens");
            }
            Response::json(&crate::vllm::answer_generate(request))
        }
        "/v1/completions" if request.body["prompt_logprobs"].as_u64() > Some(most) => {
            as_recorded("vllm-too-many-most-likely-tokens")
        }
        "/v1/completions" => Response::json(&crate::vllm::answer_completions(request)),
        _ => Response::status(404, &[]),
    }
}

#[test]
fn sglang_tells_version_model_sizes_and_tokens() {
    let stub = Stub::new(|_, request| sglang(request));
    let engine = RemoteEngine::Sglang
        .probe(stub.connection(), 4096)
        .expect("an engine");
    assert_eq!(engine.identity.version, "sglang 0.5.23");
    assert_eq!(
        (
            engine.identity.model.as_str(),
            engine.identity.dtype.as_str()
        ),
        ("default", "float32")
    );
    assert_eq!(
        engine.identity.fingerprint,
        "/models/default default none auto"
    );
    // An input must have fewer than 506.
    assert_eq!(engine.identity.longest, 505);
    let asked = vec![vec![]];
    let score = |len: usize| {
        let tokens = vec![0; len];
        let sequence = ScoredSequence {
            tokens: &tokens,
            committed: len,
            asked: &asked,
            salt: "",
        };
        let scoring = ScoreRequest {
            sequences: &[sequence],
            top: 1,
        };
        engine.scoring.score(&scoring, soon())
    };
    assert!(matches!(score(506), Err(ScoringError::Request(_))));
    // It is asked, and refuses as the recording does.
    assert!(matches!(score(505), Err(ScoringError::Status(400))));
    assert_eq!(engine.scoring.caps().ids, Ids::Shared);
    assert_eq!(
        engine.scoring.tokens_of("a", soon()).expect("tokens"),
        [1, 7]
    );
    engine.scoring.is_well(soon()).expect("health");
}

/// A token that the vocabulary does not have would end it: nothing is asked of one with other rows.
#[test]
fn sglang_with_rows_of_another_length_is_asked_nothing() {
    let stub = Stub::new(|_, request| sglang(request));
    let error = RemoteEngine::Sglang
        .probe(stub.connection(), 4097)
        .expect_err("rows");
    assert!(error.to_string().contains("have 4096 tokens"), "{error}");
    assert_eq!(stub.requests().len(), 2);
}

#[test]
fn sglang_that_does_not_tell_its_rows_is_refused() {
    let silent = |_: usize, request: &Request| match request.path.as_str() {
        "/server_info" => sglang(request),
        _ => Response::status(400, &[]),
    };
    let error = RemoteEngine::Sglang.probe(Stub::new(silent).connection(), 4096);
    assert!(matches!(error, Err(ScoringError::Answer(_))), "{error:?}");
}

#[test]
fn vllms_best_route_is_taken() {
    for (is_v2, ids) in [(true, Ids::PerRow), (false, Ids::None)] {
        let stub = Stub::new(vllm(is_v2, 5000));
        let engine = RemoteEngine::Vllm
            .probe(stub.connection(), VOCAB)
            .expect("an engine");
        assert_eq!(engine.scoring.caps().ids, ids);
        assert_eq!(
            (
                engine.identity.version.as_str(),
                engine.identity.model.as_str()
            ),
            ("vllm 0.32.0", "default")
        );
        // One token stands behind a sequence, and one is generated.
        assert_eq!(engine.identity.longest, 510);
        assert_eq!(
            engine.scoring.tokens_of("a", soon()).expect("tokens"),
            [1, 7]
        );
    }
}

#[test]
fn vllm_that_gives_few_likely_tokens_is_told_how_to_be_started() {
    let stub = Stub::new(vllm(false, 20));
    let error = RemoteEngine::Vllm
        .probe(stub.connection(), VOCAB)
        .expect_err("refused");
    assert!(error.to_string().contains("--max-logprobs -1"), "{error}");
}

#[test]
fn an_engine_that_names_no_model_is_refused() {
    let nameless = |_: usize, request: &Request| match request.path.as_str() {
        "/version" => as_recorded("vllm-version"),
        _ => Response::json(&json!({"data": Value::Array(Vec::new())})),
    };
    let error = RemoteEngine::Vllm.probe(Stub::new(nameless).connection(), VOCAB);
    assert!(
        matches!(error, Err(ScoringError::Answer("names no model"))),
        "{error:?}"
    );
}
