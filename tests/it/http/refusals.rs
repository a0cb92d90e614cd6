//! What is refused, and that nothing is lost by it.

use ops::config::Switch;
use serde_json::{Value, json};

use super::{demanding, serving, serving_in};
use crate::client::{With, begin_unread, request};

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn bad_fields_are_named_and_nothing_is_lost() {
    let serving = serving(|config| config.http.any_model = Switch::Off).await;
    let nonsense = json!({ "type": "json_schema", "name": "x", "schema": { "type": "nonsense" } });
    for (more, param) in [
        (json!({ "temperature": -1 }), "temperature"),
        (json!({ "model": 5 }), "model"),
        (json!({ "n": 129 }), "n"),
        (json!({ "logprobs": 21 }), "logprobs"),
        (json!({ "stop": vec!["x"; 17] }), "stop"),
        (json!({ "best_of": 2 }), "best_of"),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "unheard_of": 1 }), "unheard_of"),
        (json!({ "prompt": [5000] }), "prompt"),
        (json!({ "max_tokens": "8" }), "max_tokens"),
        (json!({ "max_tokens": 8.5 }), "max_tokens"),
        (json!({ "logit_bias": { "5000": 1 } }), "logit_bias"),
        (
            json!({ "speculation": { "method": "magic" } }),
            "speculation.method",
        ),
        (json!({ "user": "u".repeat(300) }), "user"),
        (
            json!({ "prompt": vec![7; 513], "max_tokens": 0, "echo": true, "logprobs": 1 }),
            "prompt",
        ),
        (
            json!({ "speculation": { "tree": "bush" } }),
            "speculation.tree",
        ),
        (json!({ "guided_regex": "(" }), "guided_regex"),
        (json!({ "guided_choice": [""] }), "guided_choice"),
        (
            json!({ "structured_outputs": { "grammar": "x" } }),
            "structured_outputs",
        ),
        (json!({ "response_format": nonsense }), "response_format"),
    ] {
        serving.completion(more).await.refused(400, Some(param));
    }
    let message = json!([{ "role": "user", "content": "word ".repeat(600) }]);
    let turn = json!([{ "role": "user", "content": "x" }]);
    for (path, body, param) in [
        (
            "chat/completions",
            json!({ "messages": message }),
            "messages",
        ),
        (
            "chat/completions",
            json!({ "messages": turn, "max_tokens": 0 }),
            "max_tokens",
        ),
        (
            "chat/completions",
            json!({ "messages": turn, "max_completion_tokens": 0 }),
            "max_completion_tokens",
        ),
        (
            "responses",
            json!({ "input": "x", "max_output_tokens": 0 }),
            "max_output_tokens",
        ),
        ("responses", json!({ "input": message }), "input"),
        (
            "responses",
            json!({ "input": "x", "text": { "format": nonsense } }),
            "text.format",
        ),
    ] {
        let refused = serving.post(&format!("/v1/{path}"), &body).await;
        let said = refused.refused(400, Some(param));
        assert!(said.contains(param), "{said}");
    }
    let other = serving.completion(json!({ "model": "other" })).await;
    let message = other.refused(404, Some("model"));
    assert!(message.contains("default"), "{message}");
    assert_eq!(other.json()["error"]["code"], "model_not_found");
    assert_eq!(serving.completion(json!({})).await.status, 200);
}

#[tokio::test]
async fn what_is_no_request_is_refused_in_the_same_shape() {
    let serving = serving(|_| {}).await;
    let post =
        async |headers: &str, body: &str| serving.post_with("/v1/completions", headers, body).await;
    post(JSON, "{").await.refused(400, Some("body"));
    post(JSON, "[1]").await.refused(400, Some("body"));
    let deep = format!("{{\"prompt\":{}", "[".repeat(1 << 20));
    post(JSON, &deep).await.refused(400, Some("body"));
    post("content-type: text/plain\r\n", "{}")
        .await
        .refused(415, None);
    post("", "{}").await.refused(415, None);
    let large = format!("{{\"prompt\": \"{}\"}}", "x".repeat(4 << 20));
    post(JSON, &large).await.refused(413, None);
    let unknown = serving.get("/v1/nothing").await;
    unknown.refused(404, None);
    assert!(
        unknown.json()["error"]["code"].is_null(),
        "no model is missing"
    );
    serving.get("/v1/completions").await.refused(405, None);
}

/// A web page that is open in a browser on this machine.
#[tokio::test]
async fn pages_do_not_reach_a_server_of_this_machine() {
    let serving = serving(|_| {}).await;
    let with = async |header: &str| {
        let headers = format!("{JSON}{header}\r\n");
        let body = json!({ "prompt": "x", "max_tokens": 1 }).to_string();
        serving.post_with("/v1/completions", &headers, &body).await
    };
    for header in [
        "origin: http://evil.example",
        "origin: null",
        "host: evil.example",
        "host: evil.example:8000",
    ] {
        with(header).await.refused(403, None);
    }
    for header in [
        "origin: http://localhost:3000",
        "host: localhost:8000",
        "host: [::1]:8000",
    ] {
        let reply = with(header).await;
        assert_eq!(reply.status, 200, "{header}");
        assert!(!reply.headers.contains("access-control"), "{reply:?}");
    }
}

#[tokio::test]
async fn requests_have_names() {
    let serving = serving(|_| {}).await;
    let headers = format!("{JSON}x-request-id: my-own\r\n");
    let body = json!({ "prompt": "x", "max_tokens": 1 }).to_string();
    let reply = serving.post_with("/v1/completions", &headers, &body).await;
    assert!(reply.headers.contains("x-request-id: my-own"), "{reply:?}");
    let reply = serving.completion(json!({ "temperature": -1 })).await;
    assert!(reply.headers.contains("x-request-id: "), "{reply:?}");
    // Unless the client has a name for it, it is that of logs and traces, which the answer's begins with.
    let reply = serving.completion(json!({ "max_tokens": 1 })).await;
    let answer = reply.json();
    let id = answer["id"]
        .as_str()
        .and_then(|id| id.strip_prefix("cmpl-"));
    let header = format!("x-request-id: {}", id.expect("an id"));
    assert!(reply.headers.contains(&header), "{reply:?}");
}

#[tokio::test]
async fn tokens_are_asked_for_where_clients_must_show_them() {
    let (_file, process) = demanding("somebody 0123456789abcdef0123456789abcdef requests=1");
    let serving = serving_in(process, |_| {}).await;
    let with_choices = async |token: &str, choices: u32| {
        let body = json!({ "prompt": "x", "max_tokens": 1, "n": choices }).to_string();
        let headers = format!("{JSON}{token}");
        serving.post_with("/v1/completions", &headers, &body).await
    };
    let with = async |token| with_choices(token, 1).await;
    with("").await.refused(401, None);
    with("authorization: Bearer nonsense-nonsense-nonsense\r\n")
        .await
        .refused(401, None);
    let token = "authorization: Bearer 0123456789abcdef0123456789abcdef\r\n";
    let known = with(token).await;
    assert_eq!(known.status, 200, "{known:?}");
    // The token may have one request under way.
    let refused = with_choices(token, 2).await;
    let problem = refused.refused(400, Some("n"));
    assert!(problem.contains("at most 1 (requests=N"), "{problem}");
    assert_eq!(serving.get("/health").await.status, 200, "for probes");
}

#[tokio::test]
async fn more_than_are_admitted_are_told_when_to_come_back() {
    let serving = serving(|config| config.max_requests = 2.try_into().expect("not zero")).await;
    let never = serving.completion(json!({ "n": 3 })).await;
    never.refused(400, Some("n"));
    let long = request("Once", 400).ignoring_eos();
    let unread = begin_unread(&serving.coordinator, long).await;
    let refused = serving.completion(json!({ "n": 2 })).await;
    refused.refused(429, None);
    assert!(refused.headers.contains("retry-after: 1"), "{refused:?}");
    let one = serving.completion(json!({ "n": 1 })).await;
    assert_eq!(
        one.status, 200,
        "of the two that were refused none holds a place"
    );
    drop(unread);
    let again = async || serving.completion(json!({ "n": 2 })).await.status;
    let limit = std::time::Instant::now() + crate::cluster::PATIENCE;
    while again().await != 200 {
        assert!(
            std::time::Instant::now() < limit,
            "places are not given back"
        );
    }
    let ended: Value = serving.completion(json!({ "n": 2 })).await.json();
    assert_eq!(ended["choices"].as_array().map(Vec::len), Some(2));
}
