//! What clients of OpenAI's API send and look for that know nothing of this server.

use ops::config::Switch;
use serde_json::{Value, json};

use super::{Reply, Serving, serving};

/// The three routes for texts, each with what it calls prompt and limit, and a prompt of this text.
fn routes(text: &str) -> [(&'static str, Value, &'static str, &'static str); 3] {
    let messages = json!([{ "role": "user", "content": text }]);
    [
        (
            "/v1/completions",
            json!({ "prompt": text }),
            "prompt",
            "max_tokens",
        ),
        (
            "/v1/chat/completions",
            json!({ "messages": messages }),
            "messages",
            "max_completion_tokens",
        ),
        (
            "/v1/responses",
            json!({ "input": text }),
            "input",
            "max_output_tokens",
        ),
    ]
}

async fn post(serving: &Serving, path: &str, body: &Value, more: Value) -> Reply {
    let mut body = body.clone();
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    serving.post(path, &body).await
}

#[tokio::test]
async fn what_passes_the_context_has_the_code_and_the_words_that_clients_look_for() {
    let serving = serving(|_| {}).await;
    let overflows = |reply: &Reply, field: &str| {
        let message = reply.refused(400, Some(field));
        let beginning = "This model's maximum context length is 512 tokens";
        assert!(
            message.starts_with(beginning) && message.contains(field),
            "{message}"
        );
        assert_eq!(reply.json()["error"]["code"], "context_length_exceeded");
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    };
    for long in ["word ".repeat(600), "x".repeat(1 << 20)] {
        for (path, body, field, _) in routes(&long) {
            overflows(&post(&serving, path, &body, json!({})).await, field);
        }
    }
    for (path, body, _, limit) in routes("x") {
        overflows(
            &post(&serving, path, &body, json!({ limit: 512 })).await,
            limit,
        );
        let zero = post(&serving, path, &body, json!({ limit: 0 })).await;
        zero.refused(400, Some(limit));
        assert_eq!(zero.json()["error"]["code"], Value::Null, "{limit}");
    }
}

#[tokio::test]
async fn an_output_of_no_said_length_has_what_the_context_leaves() {
    let serving = serving(|_| {}).await;
    for (path, body, ..) in routes("Once upon a time") {
        let reply = post(&serving, path, &body, json!({ "ignore_eos": true })).await;
        assert_eq!(reply.json()["usage"]["total_tokens"], 512, "{path}");
    }
    // Fewer than sixteen tokens are left.
    let body = json!({ "prompt": vec![300; 505], "ignore_eos": true });
    let few = serving.post("/v1/completions", &body).await.json();
    assert_eq!(few["usage"]["completion_tokens"], 7);
}

#[tokio::test]
async fn an_output_of_no_said_length_stays_within_the_operators_limit() {
    let serving = serving(|config| config.max_output_tokens = 20).await;
    for (path, body, ..) in routes("Once upon a time") {
        let reply = post(&serving, path, &body, json!({ "ignore_eos": true }))
            .await
            .json();
        let usage = &reply["usage"];
        let output = usage
            .get("completion_tokens")
            .or(usage.get("output_tokens"));
        assert_eq!(output, Some(&json!(20)), "{path}");
    }
}

/// Memory is reserved for each token of a whole answer with log probabilities.
#[tokio::test]
async fn an_answer_of_no_said_length_is_not_refused_for_the_memory_that_it_may_take() {
    let bytes = 2 << 20;
    let serving = serving(|config| config.max_answer_bytes = bytes.try_into().expect("some")).await;
    let more = json!({ "top_logprobs": 20, "logprobs": true, "ignore_eos": true });
    let (path, body, ..) = &routes("x")[1];
    let reply = post(&serving, path, body, more).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let tokens = reply.json()["usage"]["completion_tokens"].as_u64();
    assert_eq!(tokens, Some(bytes / 8 / (256 + 16 * 20)));
}

#[tokio::test]
async fn a_seed_that_was_told_is_taken_and_gives_the_same_text() {
    let serving = serving(|_| {}).await;
    let first = serving.completion(json!({ "seed": -5 })).await.json();
    let seed = &first["speculation"]["seed"];
    assert_eq!(seed, &json!(u64::MAX - 4));
    let again = serving.completion(json!({ "seed": seed })).await.json();
    assert_eq!(again["choices"], first["choices"]);
}

#[tokio::test]
async fn the_one_model_answers_to_any_name_where_that_is_allowed() {
    for (any_model, status) in [(Switch::Auto, 200), (Switch::On, 200), (Switch::Off, 404)] {
        let serving = serving(|config| config.http.any_model = any_model).await;
        for (path, body, ..) in routes("x") {
            let more = json!({ "model": "gpt-4o", "ignore_eos": true });
            let reply = post(&serving, path, &body, more).await;
            assert_eq!(reply.status, status, "{any_model:?} {path}");
            if status == 200 {
                assert_eq!(reply.json()["model"], "default");
            }
        }
        let tokenize = json!({ "model": "gpt-4o", "prompt": "x" });
        assert_eq!(serving.post("/tokenize", &tokenize).await.status, status);
        let detokenize = json!({ "model": "gpt-4o", "tokens": [300] });
        assert_eq!(
            serving.post("/detokenize", &detokenize).await.status,
            status
        );
    }
}

#[tokio::test]
async fn of_several_models_each_has_its_name() {
    let serving = serving(|config| {
        let mut second = config.models[0].clone();
        second.name = "second".to_owned();
        config.models.push(second);
        config.http.any_model = Switch::On;
    })
    .await;
    serving
        .completion(json!({ "model": "gpt-4o" }))
        .await
        .refused(404, Some("model"));
    let named = serving
        .completion(json!({ "model": "second", "max_tokens": 1 }))
        .await;
    assert_eq!(named.json()["model"], "second");
}

#[tokio::test]
async fn proxies_are_told_to_pass_streams_on_as_they_come() {
    let serving = serving(|_| {}).await;
    for (path, body, ..) in routes("x") {
        let streamed = post(&serving, path, &body, json!({ "stream": true })).await;
        assert!(
            streamed.headers.contains("x-accel-buffering: no"),
            "{streamed:?}"
        );
        let whole = post(&serving, path, &body, json!({})).await;
        assert!(!whole.headers.contains("x-accel-buffering"), "{whole:?}");
    }
}
