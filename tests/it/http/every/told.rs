//! What an answer tells that does not depend on when it was computed, in one form for all ways of asking.

use serde_json::{Value, json};
use wire::v1::{FinishReason, Finished, GenerateRequest};

use super::fields::Shows;
use crate::client::generate;
use crate::cluster::Service;

/// What an answer tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) texts: Vec<String>,
    reasons: Vec<String>,
    /// The tokens of each output.
    pub(crate) tokens: Vec<Vec<u32>>,
    /// Their log probabilities, and how many more likely tokens each comes with.
    logprobs: Vec<Vec<(f32, usize)>>,
    /// Tokens of the prompt and of all outputs.
    usage: (u64, u64),
    speculation: Value,
}

impl Told {
    /// Forgets what only some requests are told of.
    pub(crate) fn keep(&mut self, shows: Shows) {
        if !shows.tokens {
            self.tokens.clear();
        }
        if !shows.logprobs {
            self.logprobs.clear();
        }
    }
}

/// The `outputs` first choices over gRPC.
pub(crate) async fn of_grpc(coordinator: &Service, same: &GenerateRequest, outputs: u64) -> Told {
    let mut told = Told::default();
    for choice in 0..outputs as u32 {
        let asked = GenerateRequest {
            choice,
            ..same.clone()
        };
        let answer = generate(coordinator, asked).await;
        told.usage.0 = answer.started.prompt_tokens.into();
        told.usage.1 += answer.tokens.len() as u64;
        if choice == 0 {
            told.speculation = effective(&answer.finished);
        }
        let logprobs = answer.logprobs.iter();
        let logprobs = logprobs.map(|of| (of.logprob, of.top.len()));
        told.logprobs.push(logprobs.collect());
        told.texts.push(answer.text);
        told.tokens.push(answer.tokens);
        let reason = match answer.finished.reason() {
            FinishReason::Length => "length",
            FinishReason::Stop => "stop",
            other => panic!("{other:?}"),
        };
        told.reasons.push(reason.to_owned());
    }
    told
}

fn effective(finished: &Finished) -> Value {
    let settings = finished.settings.iter();
    let settings = settings.map(|set| (set.name.clone(), json!(set.value)));
    json!({
        "method": finished.effective_method,
        "settings": settings.collect::<serde_json::Map<_, _>>(),
        "seed": finished.seed,
        "lossless": finished.lossless,
        "reproducible": finished.reproducible,
        "exact": finished.exact,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn ids(value: &Value) -> Vec<u32> {
    let ids = value.as_array().into_iter().flatten();
    ids.map(|id| id.as_u64().expect("an id") as u32).collect()
}

/// Log probabilities as chats have them, or as completions do.
fn scores(logprobs: &Value) -> Vec<(f32, usize)> {
    let number = |value: &Value| value.as_f64().expect("a number") as f32;
    if let Some(tokens) = logprobs.as_array().or(logprobs["content"].as_array()) {
        let scored = tokens.iter().map(|token| {
            let more = token["top_logprobs"].as_array().map_or(0, Vec::len);
            (number(&token["logprob"]), more)
        });
        return scored.collect();
    }
    let own = logprobs["token_logprobs"].as_array().into_iter().flatten();
    let more = logprobs["top_logprobs"].as_array().into_iter().flatten();
    // The token itself stands among the others, if it is not one of them already.
    own.zip(more)
        .map(|(own, more)| {
            (
                number(own),
                more.as_object().map_or(0, |more| more.len().min(3)),
            )
        })
        .collect()
}

/// A whole answer of `/v1/completions` or `/v1/chat/completions`.
pub(crate) fn of_completion(answer: &Value) -> Told {
    let mut told = Told::default();
    for (at, choice) in (answer["choices"].as_array().expect("choices").iter()).enumerate() {
        assert_eq!(choice["index"], at);
        let content = &choice["message"]["content"];
        told.texts.push(text(if content.is_null() {
            &choice["text"]
        } else {
            content
        }));
        told.reasons.push(text(&choice["finish_reason"]));
        told.tokens.push(ids(&choice["token_ids"]));
        told.logprobs.push(scores(&choice["logprobs"]));
    }
    told.close(&answer["usage"], &answer["speculation"])
}

/// The same as events, each of which tells the tokens so far.
pub(crate) fn of_events(events: &[Value]) -> Told {
    let used = |event: &Value| event["usage"]["completion_tokens"].as_u64();
    let used: Vec<u64> = events
        .iter()
        .map(|event| used(event).expect("usage"))
        .collect();
    assert!(used.is_sorted(), "{used:?}");
    let pieces = events
        .iter()
        .filter_map(|event| event["choices"].as_array());
    let mut told = Told::default();
    for piece in pieces.flatten() {
        let at = piece["index"].as_u64().expect("an index") as usize;
        while told.texts.len() <= at {
            told.texts.push(String::new());
            told.reasons.push(String::new());
            told.tokens.push(Vec::new());
            told.logprobs.push(Vec::new());
        }
        told.texts[at] += &text(&piece["text"]);
        told.texts[at] += &text(&piece["delta"]["content"]);
        told.reasons[at] += &text(&piece["finish_reason"]);
        told.tokens[at].extend(ids(&piece["token_ids"]));
        told.logprobs[at].extend(scores(&piece["logprobs"]));
    }
    let last = events.last().expect("events");
    told.close(&last["usage"], &last["speculation"])
}

/// A whole answer of `/v1/responses`.
pub(crate) fn of_response(answer: &Value) -> Told {
    let part = &answer["output"][0]["content"][0];
    let reason = match answer["status"].as_str() {
        Some("incomplete") => "length",
        Some("completed") => "stop",
        _ => panic!("{answer}"),
    };
    let told = Told {
        texts: vec![text(&part["text"])],
        reasons: vec![reason.to_owned()],
        tokens: vec![Vec::new()],
        logprobs: vec![scores(&part["logprobs"])],
        ..Told::default()
    };
    let used = &answer["usage"];
    let usage = json!({ "prompt_tokens": used["input_tokens"], "completion_tokens": used["output_tokens"] });
    told.close(&usage, &answer["speculation"])
}

/// The same as events, of which the last one holds the response.
pub(crate) fn of_response_events(events: &[Value]) -> Told {
    let deltas = events.iter().map(|event| &event["delta"]);
    let texts = deltas.filter_map(Value::as_str).collect();
    let whole = of_response(&events.last().expect("events")["response"]);
    Told {
        texts: vec![texts],
        ..whole
    }
}

impl Told {
    fn close(mut self, usage: &Value, speculation: &Value) -> Self {
        let count = |name: &str| usage[name].as_u64().unwrap_or_else(|| panic!("{usage}"));
        self.usage = (count("prompt_tokens"), count("completion_tokens"));
        self.speculation = speculation.clone();
        self
    }
}
