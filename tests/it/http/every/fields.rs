//! The table: each field as JSON has it, and as gRPC does.

mod grammars;
mod methods;
mod sampling;

use serde_json::{Value, json};
use wire::v1::GenerateRequest;

use super::told::Told;

/// Some fields of a request together.
pub(crate) struct Field {
    pub(crate) json: Value,
    /// Sets the same fields.
    pub(crate) set: Box<dyn Fn(&mut GenerateRequest)>,
    /// Whether the answer to [`super::plain`] is another one with them.
    pub(crate) changes: bool,
    pub(crate) shows: Shows,
}

/// What is told of tokens beside their text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shows {
    pub(crate) tokens: bool,
    pub(crate) logprobs: bool,
}

fn field(json: Value, set: impl Fn(&mut GenerateRequest) + 'static) -> Field {
    Field {
        json,
        set: Box::new(set),
        changes: true,
        shows: Shows::default(),
    }
}

/// Fields that change nothing.
fn idle(json: Value) -> Field {
    Field {
        changes: false,
        ..field(json, |_| {})
    }
}

/// The fields of all routes; `base` is the answer without any of them.
pub(crate) fn common(base: &Told) -> Vec<Field> {
    let mut fields = sampling::fields(base);
    fields.extend(sampling::ends(base));
    fields.push(sampling::together(base));
    fields.extend(methods::fields());
    fields.extend(grammars::fields());
    fields.push(Field {
        // The name of the served model is told as it is configured, and the tenant is not.
        changes: false,
        ..field(
            json!({ "model": "other", "user": "somebody", "cache_salt": "s", "cache_prompt": false, "n": 1 }),
            |request| {
                "other".clone_into(&mut request.model);
                "somebody".clone_into(&mut request.tenant);
                "s".clone_into(&mut request.cache_salt);
                request.cache_prompt = Some(false);
            },
        )
    });
    fields.push(Field {
        changes: false,
        ..field(
            json!({ "prediction": { "type": "content", "content": "once upon a time" } }),
            |request| "once upon a time".clone_into(&mut request.prediction),
        )
    });
    // Whatever they hold.
    fields.push(idle(json!({
        "client_metadata": { "a": 1 }, "metadata": { "b": "c" }, "prompt_cache_key": "k",
        "prompt_cache_options": {}, "service_tier": "flex",
        "prompt_cache_retention": "24h", "reasoning_effort": "low", "safety_identifier": "s", "store": true,
    })));
    // As they are anyway.
    fields.push(idle(json!({
        "include_stop_str_in_output": false, "length_penalty": 1.0, "priority": 0, "skip_special_tokens": true,
        "spaces_between_special_tokens": true, "use_beam_search": false, "return_token_ids": false,
        "report_rounds": false,
    })));
    fields
}

/// Log probabilities with three more likely tokens each.
fn scored(json: Value) -> Field {
    Field {
        shows: Shows {
            logprobs: true,
            ..Shows::default()
        },
        ..field(json, |request| {
            (request.logprobs, request.top_logprobs) = (true, 3);
        })
    }
}

fn with_tokens(json: Value) -> Field {
    Field {
        shows: Shows {
            tokens: true,
            ..Shows::default()
        },
        ..idle(json)
    }
}

/// Fields of requests with several outputs.
fn several() -> [Field; 2] {
    [
        idle(json!({ "n": 3 })),
        with_tokens(json!({ "n": 2, "return_token_ids": true })),
    ]
}

pub(crate) fn of_completions() -> Vec<Field> {
    let mut own = vec![
        scored(json!({ "logprobs": 3 })),
        field(json!({ "max_tokens": 11 }), |request| {
            request.max_tokens = Some(11);
        }),
        idle(json!({ "best_of": 2, "n": 2, "suffix": "", "echo": false })),
        grammars::of_format("response_format", true),
    ];
    own.extend(several());
    own
}

pub(crate) fn of_chats() -> Vec<Field> {
    let mut own = vec![
        scored(json!({ "logprobs": true, "top_logprobs": 3 })),
        field(json!({ "max_tokens": 11 }), |request| {
            request.max_tokens = Some(11);
        }),
        field(json!({ "max_completion_tokens": 13 }), |request| {
            request.max_tokens = Some(13);
        }),
        idle(json!({
            "response_format": { "type": "text" }, "guided_json": null, "modalities": ["text"], "tools": [], "tool_choice": "none",
            "parallel_tool_calls": true, "verbosity": "medium", "echo": false, "best_of": 1,
            "add_generation_prompt": true, "continue_final_message": false, "chat_template_kwargs": {},
        })),
        grammars::of_format("response_format", true),
    ];
    own.extend(several());
    own
}

pub(crate) fn of_responses() -> Vec<Field> {
    vec![
        scored(json!({ "top_logprobs": 3, "include": ["message.output_text.logprobs"] })),
        field(json!({ "max_output_tokens": 11 }), |request| {
            request.max_tokens = Some(11);
        }),
        idle(json!({ "instructions": "Once upon", "input": " a time" })),
        idle(json!({
            "background": false, "tools": [], "tool_choice": "auto", "parallel_tool_calls": false,
            "truncation": "disabled", "reasoning": { "effort": "low" }, "chat_template_kwargs": {},
            "text": { "format": { "type": "text" }, "verbosity": "medium" },
        })),
        grammars::of_text(),
    ]
}
