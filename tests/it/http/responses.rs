//! `/v1/responses`: the same tokens once more, whole and as events.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Serving, serving, serving_at};
use crate::client::{With, generate, request};
use crate::paced::Pace;

async fn respond(serving: &Serving, more: Value) -> super::Reply {
    let mut request = json!({
        "input": "a time", "instructions": "Once upon ", "max_output_tokens": 24, "seed": 7, "temperature": 1,
    });
    for (name, value) in more.as_object().expect("an object") {
        request[name] = value.clone();
    }
    serving.post("/v1/responses", &request).await
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| &event["type"]);
    types.map(|name| name.as_str().expect("a type")).collect()
}

#[tokio::test]
async fn a_response_is_what_grpc_gives_whole_and_as_events() {
    let serving = serving(|_| {}).await;
    let mut same = request("Once upon a time", 24).seed(7);
    (same.logprobs, same.top_logprobs) = (true, 2);
    let expected = generate(&serving.coordinator, same).await;
    let whole = respond(&serving, json!({ "top_logprobs": 2 })).await.json();
    let part = &whole["output"][0]["content"][0];
    assert_eq!(part["text"], expected.text);
    assert_eq!(
        (&whole["status"], &whole["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!(whole["usage"]["output_tokens"], 24);
    let prompt = whole["usage"]["input_tokens"].as_u64();
    assert_eq!(prompt, Some(expected.started.prompt_tokens.into()));
    assert_eq!(whole["instructions"], "Once upon ");
    assert_eq!(whole["speculation"]["seed"], 7);
    let of_tokens = part["logprobs"].as_array().expect("log probabilities");
    assert_eq!(of_tokens.len(), 24);
    for (found, expected) in of_tokens.iter().zip(&expected.logprobs) {
        let found = found["logprob"].as_f64().map(|found| found as f32);
        assert_eq!(found, Some(expected.logprob));
    }

    let more = json!({ "top_logprobs": 2, "stream": true, "stream_options": { "include_obfuscation": false } });
    let reply = respond(&serving, more).await;
    let events = reply.events();
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64())
        .collect();
    let expected: Vec<_> = (0..events.len() as u64).map(Some).collect();
    assert_eq!(numbers, expected);
    let types = types(&events);
    let named = reply
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("event: "));
    assert!(
        named.eq(types.iter().copied()),
        "each event is named by its type"
    );
    let (begin, rest) = types.split_at(4);
    assert_eq!(
        begin,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    let (deltas, end) = rest.split_at(rest.len() - 4);
    assert!(
        !deltas.is_empty()
            && deltas
                .iter()
                .all(|name| *name == "response.output_text.delta")
    );
    assert_eq!(
        end,
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.incomplete"
        ]
    );
    let text: String = events
        .iter()
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(json!(text), part["text"]);
    let scores = events.iter().filter(|event| event["delta"].is_string());
    let scores: Vec<_> = scores
        .flat_map(|event| event["logprobs"].as_array().expect("a list").clone())
        .collect();
    assert_eq!(&scores, of_tokens);
    let last = events.last().expect("an event");
    assert_eq!(
        last["response"]["output"][0]["content"],
        whole["output"][0]["content"]
    );
    assert_eq!(last["response"]["usage"], whole["usage"]);
}

#[tokio::test]
async fn a_response_that_ends_by_itself_is_complete() {
    let serving = serving(|_| {}).await;
    let whole = respond(&serving, json!({})).await.json();
    let text = whole["output"][0]["content"][0]["text"]
        .as_str()
        .expect("text");
    let stop: String = text.chars().skip(8).take(4).collect();
    let stopped = respond(&serving, json!({ "stop": stop })).await.json();
    assert_eq!(
        (&stopped["status"], &stopped["incomplete_details"]),
        (&json!("completed"), &Value::Null)
    );
    let refused = respond(&serving, json!({ "previous_response_id": "resp_1" })).await;
    refused.refused(400, Some("previous_response_id"));
}

#[tokio::test]
async fn a_failure_in_mid_stream_is_the_last_event() {
    let slow = Duration::from_millis(20);
    let pace = Pace::default();
    pace.slow(slow);
    let serving = serving_at(&pace).await;
    let spoiling = async {
        tokio::time::sleep(20 * slow).await;
        pace.spoil();
    };
    let long = json!({ "max_output_tokens": 300, "ignore_eos": true, "stream": true });
    let (reply, ()) = tokio::join!(respond(&serving, long), spoiling);
    let events = reply.events();
    let last = events.last().expect("an event");
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert!(last["response"]["error"]["message"].is_string(), "{last}");
    assert!(types(&events).contains(&"response.output_text.delta"));
}
