//! Every field of the OpenAI API: whole and as events, an answer is what gRPC gives for the same request.

mod fields;
mod told;

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use wire::v1::GenerateRequest;

use super::{Serving, serving};
use crate::client::{With, request};
use fields::{Field, common, of_chats, of_completions, of_responses};
use told::{Told, of_completion, of_events, of_grpc, of_response, of_response_events};

const PROMPT: &str = "Once upon a time";

/// A route, the fields of its requests, and how its answers are read.
struct Route {
    path: &'static str,
    /// Name of its requests in `/openapi.json`.
    schema: &'static str,
    /// Fields that every request here has.
    base: Value,
    own: fn() -> Vec<Field>,
    whole: fn(&Value) -> Told,
    events: fn(&[Value]) -> Told,
}

fn routes() -> [Route; 3] {
    let message = json!([{ "role": "user", "content": PROMPT }]);
    let base = |mut input: Value| {
        for (name, value) in [("seed", json!(7)), ("temperature", json!(1))] {
            input[name] = value;
        }
        input
    };
    [
        Route {
            path: "/v1/completions",
            schema: "CompletionRequest",
            base: base(json!({ "prompt": PROMPT, "max_tokens": 24 })),
            own: of_completions,
            whole: of_completion,
            events: of_events,
        },
        Route {
            path: "/v1/chat/completions",
            schema: "ChatRequest",
            base: base(json!({ "messages": message, "max_tokens": 24 })),
            own: of_chats,
            whole: of_completion,
            events: of_events,
        },
        Route {
            path: "/v1/responses",
            schema: "ResponseRequest",
            base: base(json!({ "input": PROMPT, "max_output_tokens": 24 })),
            own: of_responses,
            whole: of_response,
            events: of_response_events,
        },
    ]
}

/// The request that gRPC is sent.
fn plain() -> GenerateRequest {
    request(PROMPT, 24).seed(7).temperature(1.0)
}

async fn answered(serving: &Serving, path: &str, body: &Value) -> super::Reply {
    let reply = serving.post(path, body).await;
    assert_eq!(reply.status, 200, "{path}, {body}: {reply:?}");
    reply
}

/// Compares the answers to `route`'s request with `field`, whole and as events, with gRPC's.
async fn compare(serving: &Serving, route: &Route, field: &Field) {
    let mut body = route.base.clone();
    for (name, value) in field.json.as_object().expect("an object") {
        body[name] = value.clone();
    }
    let mut same = plain();
    (field.set)(&mut same);
    let outputs = body["n"].as_u64().unwrap_or(1);
    let mut expected = of_grpc(&serving.coordinator, &same, outputs).await;
    expected.keep(field.shows);
    let mut whole = (route.whole)(&answered(serving, route.path, &body).await.json());
    whole.keep(field.shows);
    assert_eq!(whole, expected, "{}, {}", route.path, field.json);
    body["stream"] = json!(true);
    body["stream_options"] = json!({
        "include_usage": true, "continuous_usage_stats": true, "include_obfuscation": false,
    });
    let mut events = (route.events)(&answered(serving, route.path, &body).await.events());
    events.keep(field.shows);
    assert_eq!(events, expected, "{}, {} as events", route.path, field.json);
}

/// The fields are unlike one another and their defaults, and each changes the answer that has one to show.
#[tokio::test]
async fn each_field_has_the_effect_that_it_has_over_grpc() {
    let serving = serving(|config| config.models[0].aliases = vec!["other".to_owned()]).await;
    let base = of_grpc(&serving.coordinator, &plain(), 1).await;
    let common = common(&base);
    for route in routes() {
        let own = (route.own)();
        let fields: Vec<&Field> = common.iter().chain(&own).collect();
        for some in fields.chunks(8) {
            join_all(some.iter().map(|field| compare(&serving, &route, field))).await;
        }
    }
    for field in common.iter().filter(|field| field.changes) {
        let mut changed = plain();
        (field.set)(&mut changed);
        let changed = of_grpc(&serving.coordinator, &changed, 1).await;
        assert_ne!(changed, base, "{}", field.json);
    }
}

/// A field that is added to the API is added to the table.
#[tokio::test]
async fn no_field_is_left_out() {
    let serving = serving(|_| {}).await;
    let all = serving.get("/openapi.json").await.json();
    let common = common(&of_grpc(&serving.coordinator, &plain(), 1).await);
    for route in routes() {
        let own = (route.own)();
        let bodies = common.iter().chain(&own).map(|field| &field.json);
        let mut set: BTreeSet<String> = bodies.chain([&route.base]).flat_map(names).collect();
        // Set by the comparison itself; refused whatever they hold.
        for name in [
            "stream",
            "stream_options",
            "stream_options.include_usage",
            "stream_options.continuous_usage_stats",
            "stream_options.include_obfuscation",
            "previous_response_id",
            "conversation",
        ] {
            set.insert(name.to_owned());
        }
        let mut described = BTreeSet::new();
        describe(
            &all,
            &all["components"]["schemas"][route.schema],
            "",
            &mut described,
        );
        let missing: Vec<_> = described.difference(&set).collect();
        assert!(
            missing.is_empty() && described.len() > 50,
            "{}: {missing:?}",
            route.path
        );
    }
}

/// The names of the fields of `body`, those of an object in it after a dot.
fn names(body: &Value) -> Vec<String> {
    let fields = body.as_object().expect("an object").iter();
    let named = fields.flat_map(|(name, value)| {
        let within = value.as_object().into_iter().flatten();
        let within: Vec<_> = within.map(|(inner, _)| format!("{name}.{inner}")).collect();
        [vec![name.clone()], within].concat()
    });
    named.collect()
}

/// The names of the properties of a schema, those of closed objects in it after a dot.
fn describe(all: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let referred = schema["$ref"].as_str();
    let schema = referred.map_or(schema, |reference| {
        let name = reference.rsplit('/').next().unwrap_or_default();
        &all["components"]["schemas"][name]
    });
    for either in schema["anyOf"].as_array().into_iter().flatten() {
        describe(all, either, path, found);
    }
    if schema["additionalProperties"] == false {
        for (name, inner) in schema["properties"].as_object().expect("properties") {
            found.insert(format!("{path}{name}"));
            describe(all, inner, &format!("{path}{name}."), found);
        }
    }
}
