//! Anthropic's and Ollama's forms: the same tokens once more, whole and in pieces.

use serde_json::{Value, json};

use super::{Reply, Serving, demanding, serving, serving_in};
use crate::client::{generate, request};

fn body(more: &Value) -> Value {
    let mut body = json!({ "messages": [{ "role": "user", "content": "Once upon a time" }] });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

async fn answered(serving: &Serving, path: &str, more: Value) -> Reply {
    let reply = serving.post(path, &body(&more)).await;
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply
}

/// The one tool there is, with a single thing to say to it.
fn schema() -> Value {
    let properties = json!({ "color": { "enum": ["red"] } });
    json!({ "type": "object", "properties": properties, "required": ["color"] })
}

/// A text that ends an answer, `text` without it, is named.
async fn stops_are_told(serving: &Serving, text: &str) {
    let middle = text.ceil_char_boundary(text.len() / 2);
    let stop = &text[middle..text.ceil_char_boundary(middle + 3)];
    for stream in [false, true] {
        let asked = json!({
            "max_tokens": 24, "seed": 42, "stop_sequences": ["no such text", stop], "stream": stream,
        });
        let reply = answered(serving, "/v1/messages", asked).await;
        let told = if stream {
            let events = reply.events();
            events[events.len() - 2]["delta"].clone()
        } else {
            reply.json()
        };
        assert_eq!(told["stop_reason"], "stop_sequence", "{told}");
        assert_eq!(told["stop_sequence"], stop, "{told}");
    }
}

#[tokio::test]
async fn a_message_of_anthropic_is_what_grpc_gives_whole_and_as_events() {
    let serving = serving(|_| {}).await;
    let expected = generate(&serving.coordinator, request("Once upon a time", 24)).await;
    let asked = |stream: bool| json!({ "max_tokens": 24, "seed": 42, "stream": stream });
    let whole = answered(&serving, "/v1/messages", asked(false))
        .await
        .json();
    assert_eq!(
        whole["content"],
        json!([{ "type": "text", "text": expected.text }])
    );
    assert_eq!(
        (&whole["stop_reason"], &whole["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(24))
    );
    let events = answered(&serving, "/v1/messages", asked(true))
        .await
        .events();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().expect("a type"))
        .collect();
    assert_eq!(kinds[..2], ["message_start", "content_block_start"]);
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["content_block_stop", "message_delta", "message_stop"]
    );
    let text = events
        .iter()
        .filter_map(|event| event["delta"]["text"].as_str());
    assert_eq!(text.collect::<String>(), expected.text);
    stops_are_told(&serving, &expected.text).await;
    let tool = json!({ "name": "pick", "input_schema": schema() });
    let calling = |stream: bool| json!({ "max_tokens": 60, "stream": stream, "tools": [tool], "tool_choice": { "type": "any" } });
    let whole = answered(&serving, "/v1/messages", calling(false))
        .await
        .json();
    let [call] = &whole["content"].as_array().expect("blocks")[..] else {
        panic!("{whole}");
    };
    assert_eq!(
        (&call["name"], &call["input"], &whole["stop_reason"]),
        (
            &json!("pick"),
            &json!({ "color": "red" }),
            &json!("tool_use")
        )
    );
    let events = answered(&serving, "/v1/messages", calling(true))
        .await
        .events();
    let json: String = events
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(json, r#"{"color": "red"}"#);
}

#[tokio::test]
async fn lines_of_ollama_are_what_grpc_gives_whole_and_one_by_one() {
    let serving = serving(|_| {}).await;
    let expected = generate(&serving.coordinator, request("Once upon a time", 24)).await;
    let options = json!({ "num_predict": 24, "seed": 42, "num_ctx": 512 });
    let asked = |stream: bool| json!({ "stream": stream, "options": options });
    let whole = answered(&serving, "/api/chat", asked(false)).await.json();
    assert_eq!(
        whole["message"],
        json!({ "role": "assistant", "content": expected.text })
    );
    assert_eq!(
        (&whole["done_reason"], &whole["eval_count"]),
        (&json!("length"), &json!(24))
    );
    assert_eq!(
        whole["warnings"],
        json!(["options.num_ctx changes nothing here"])
    );
    let reply = answered(&serving, "/api/chat", asked(true)).await;
    let lines: Vec<Value> = reply
        .body
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let text = lines
        .iter()
        .filter_map(|line| line["message"]["content"].as_str());
    assert_eq!(text.collect::<String>(), expected.text);
    assert!(lines.iter().rev().skip(1).all(|line| line["done"] == false));
    assert_eq!(lines.last().expect("an end")["done_reason"], "length");
    let raw =
        json!({ "prompt": "Once upon a time", "raw": true, "stream": false, "options": options });
    let raw = serving.post("/api/generate", &raw).await.json();
    assert_eq!(raw["response"], expected.text);
    let refused = serving.post("/api/chat", &json!({})).await;
    assert_eq!(
        (refused.status, refused.json()["error"].as_str()),
        (400, Some("messages: missing, expected at least one"))
    );
    let tags = serving.get("/api/tags").await.json();
    assert_eq!(tags["models"][0]["name"], "default");
}

/// Anthropic's clients show their token in a header of their own.
#[tokio::test]
async fn a_token_is_taken_from_the_header_that_anthropics_clients_have() {
    let token = "a-token-of-enough-letters-for-anybody";
    let (_file, process) = demanding(token);
    let serving = serving_in(process, |_| {}).await;
    let asked = body(&json!({ "max_tokens": 2 })).to_string();
    let with = async |header: &str| {
        let headers = format!("content-type: application/json\r\n{header}");
        serving
            .post_with("/v1/messages", &headers, &asked)
            .await
            .status
    };
    assert_eq!(with(&format!("x-api-key: {token}\r\n")).await, 200);
    assert_eq!(
        with("x-api-key: another-token-of-enough-letters-it-is\r\n").await,
        401
    );
    assert_eq!(with("").await, 401);
}
