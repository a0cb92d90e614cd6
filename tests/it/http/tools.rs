//! Tools over HTTP: conversations whose calls are the same however they were drafted and delivered, in every form.

mod counted;
mod reasoning;
mod refused;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Serving, serving};
use crate::prompts::full_sweep;

/// Forms whose marks a model without tokens for them writes in few tokens.
const FORMS: [&str; 8] = [
    "generic",
    "hermes",
    "llama-3",
    "qwen3-coder",
    "mistral",
    "mistral-args",
    "granite",
    "phi-4",
];

/// Ways of drafting, the target alone first.
fn ways() -> [Value; 4] {
    [
        json!({ "enabled": false }),
        json!({ "draft_len": 4 }),
        json!({ "draft_len": 5, "drafting": "max-gram" }),
        json!({ "schedule": "stream" }),
    ]
}

fn schema(name: &str) -> Value {
    match name {
        "weather" => json!({
            "type": "object",
            "properties": {
                "city": {"enum": ["Paris", "Zürich", "a \"b\" \\ c"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
            },
            "required": ["city"],
            "additionalProperties": false,
        }),
        "note" => json!({
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 12}},
            "required": ["text"],
            "additionalProperties": false,
        }),
        other => panic!("no tool {other}"),
    }
}

fn tools() -> Value {
    let tool = |name: &str| {
        let function =
            json!({ "name": name, "description": "Does it", "parameters": schema(name) });
        json!({ "type": "function", "function": function })
    };
    json!([tool("weather"), tool("note")])
}

/// Returns the message of a streamed chat, with the checks of how it comes, and why it ended.
fn assembled(events: &[Value]) -> (Value, Value) {
    let (mut content, mut reasoning) = (String::new(), String::new());
    let mut calls: BTreeMap<u64, Value> = BTreeMap::new();
    let mut reason = Value::Null;
    for event in events {
        for choice in event["choices"].as_array().expect("choices") {
            let delta = &choice["delta"];
            content += delta["content"].as_str().unwrap_or_default();
            reasoning += delta["reasoning_content"].as_str().unwrap_or_default();
            for part in delta["tool_calls"].as_array().into_iter().flatten() {
                let index = part["index"].as_u64().expect("an index");
                let arguments = part["function"]["arguments"].as_str().expect("arguments");
                if let Some(call) = calls.get_mut(&index) {
                    assert!(part["id"].is_null() && !arguments.is_empty());
                    let joined = call["function"]["arguments"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned();
                    call["function"]["arguments"] = json!(joined + arguments);
                } else {
                    assert_eq!(index, calls.len() as u64, "calls come in order");
                    assert!(part["id"].is_string() && part["function"]["name"].is_string());
                    assert_eq!((&part["type"], arguments), (&json!("function"), ""));
                    let call = json!({ "id": part["id"], "type": "function", "function": part["function"] });
                    calls.insert(index, call);
                }
            }
            if !choice["finish_reason"].is_null() {
                reason = choice["finish_reason"].clone();
            }
        }
    }
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !calls.is_empty() {
        if content.is_empty() {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = calls.into_values().collect();
    }
    if !reasoning.is_empty() {
        message["reasoning_content"] = json!(reasoning);
    }
    (message, reason)
}

/// Returns a message without what differs from request to request.
fn without_ids(message: &Value) -> Value {
    let mut message = message.clone();
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        call["id"] = Value::Null;
    }
    message
}

/// Answers a turn whole and as events, by every way of drafting; all are the same. Returns the message.
async fn answered(serving: &Serving, body: &Value, what: &str) -> Value {
    let mut first: Option<(Value, Value)> = None;
    for way in ways() {
        for stream in [false, true] {
            let mut body = body.clone();
            body["speculation"] = way.clone();
            body["stream"] = json!(stream);
            let reply = serving.post("/v1/chat/completions", &body).await;
            assert_eq!(reply.status, 200, "{what}: {reply:?}");
            let (message, reason) = if stream {
                assembled(&reply.events())
            } else {
                let choice = &reply.json()["choices"][0];
                (choice["message"].clone(), choice["finish_reason"].clone())
            };
            match &first {
                None => first = Some((message, reason)),
                Some((expected, why)) => {
                    let how = format!("{what}, {way}, streamed {stream}");
                    assert_eq!(without_ids(&message), without_ids(expected), "{how}");
                    assert_eq!(reason, *why, "{how}");
                }
            }
        }
    }
    let (message, reason) = first.expect("an answer");
    let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
    if reason != "length" {
        let expected = if calls > 0 { "tool_calls" } else { "stop" };
        assert_eq!(reason, expected, "{what}");
        check(&message, what);
    }
    message
}

/// Checks that all calls of a whole message are of the tools, with arguments of their schemas.
fn check(message: &Value, what: &str) {
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let name = call["function"]["name"].as_str().expect("a name");
        let arguments = call["function"]["arguments"].as_str().expect("arguments");
        let arguments: Value = serde_json::from_str(arguments)
            .unwrap_or_else(|error| panic!("{what}: {error}: {arguments}"));
        let validator = jsonschema::validator_for(&schema(name)).expect("a schema");
        assert!(validator.is_valid(&arguments), "{what}: {name} {arguments}");
    }
}

/// Three turns: calls that must come and what they came to, an answer that may call, a call of one tool.
async fn converse(serving: &Serving, seed: u64, temperature: f32, what: &str) -> usize {
    let mut messages = vec![json!({ "role": "user", "content": "Weather?" })];
    let mut called = 0;
    let named = json!({ "type": "function", "function": { "name": "note" } });
    for (turn, choice) in [json!("required"), json!("auto"), named]
        .into_iter()
        .enumerate()
    {
        let body = json!({
            "messages": messages, "tools": tools(), "tool_choice": choice, "parallel_tool_calls": seed.is_multiple_of(2),
            "max_tokens": 60, "seed": seed, "temperature": temperature,
        });
        let what = format!("{what}, seed {seed}, T={temperature}, turn {turn}");
        let message = answered(serving, &body, &what).await;
        let calls = message["tool_calls"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert!(turn == 1 || !calls.is_empty(), "{what}: {message}");
        assert!(turn != 2 || calls.len() == 1, "{what}: {message}");
        called += calls.len();
        messages.push(message);
        messages.extend(calls.iter().map(|call| {
            json!({ "role": "tool", "tool_call_id": call["id"], "content": [{ "type": "text", "text": "12" }] })
        }));
        messages.push(json!({ "role": "user", "content": "And?" }));
        // The context is short.
        let from = messages.len().saturating_sub(5);
        let orphan = |message: &Value| message["role"] == "tool";
        messages = messages
            .split_off(from)
            .into_iter()
            .skip_while(orphan)
            .collect();
    }
    called
}

/// A hundred conversations in the long form.
#[tokio::test]
async fn calls_are_the_same_however_they_are_drafted_and_delivered() {
    let seeds = if full_sweep() { 7 } else { 1 };
    for form in FORMS {
        let serving = serving(|config| config.tool_form = form.to_owned()).await;
        let mut called = 0;
        for seed in 0..seeds {
            for temperature in [0.0, 1.0] {
                called += converse(&serving, seed, temperature, form).await;
            }
        }
        assert!(called >= 4 * seeds as usize, "{form}: {called} calls");
    }
}

#[tokio::test]
async fn a_response_has_an_item_for_each_call_whole_and_as_events() {
    let serving = serving(|_| {}).await;
    let tool = json!({ "type": "function", "name": "weather", "parameters": schema("weather") });
    let body = |stream: bool| {
        json!({
            "input": "Weather?", "tools": [tool, { "type": "web_search" }], "tool_choice": "required", "stream": stream,
            "max_output_tokens": 80, "seed": 3, "temperature": 1,
        })
    };
    let whole = serving.post("/v1/responses", &body(false)).await.json();
    let item = &whole["output"][0];
    assert_eq!(
        (&item["type"], &item["name"]),
        (&json!("function_call"), &json!("weather"))
    );
    assert_eq!(whole["status"], "completed");
    assert_eq!(whole["tools"].as_array().map(Vec::len), Some(2));
    assert!(
        whole["warnings"][0]
            .as_str()
            .is_some_and(|it| it.contains("web_search")),
        "{whole}"
    );
    let events = serving.post("/v1/responses", &body(true)).await.events();
    let types: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().expect("a type"))
        .collect();
    assert_eq!(
        types[..3],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added"
        ]
    );
    let last = [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(types[types.len() - 3..], last);
    let deltas = events
        .iter()
        .filter(|event| event["type"] == "response.function_call_arguments.delta");
    let joined: String = deltas
        .map(|event| event["delta"].as_str().expect("a text"))
        .collect();
    assert_eq!(json!(joined), item["arguments"]);
    let done = &events[events.len() - 2]["item"];
    assert_eq!(
        (&done["arguments"], &done["status"]),
        (&item["arguments"], &json!("completed"))
    );
    // The call and its answer go back as they came.
    let answer =
        json!({ "type": "function_call_output", "call_id": item["call_id"], "output": "12" });
    let next = json!({
        "input": [{ "role": "user", "content": "Weather?" }, item, answer], "tools": [tool], "max_output_tokens": 8,
        "tool_choice": "none",
    });
    let reply = serving.post("/v1/responses", &next).await;
    assert_eq!(reply.json()["output"][0]["type"], "message", "{reply:?}");
}
