//! `/v1/responses`: a turn of a conversation, in OpenAI's newer form. Nothing is stored: state is the client's.

mod events;
mod items;
mod object;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::Value;
use wire::status::BadField;
use wire::{grammar, json};

use super::error::ApiError;
use super::fields::{JsonFields, list, quoted};
use super::guard::RequestId;
use super::output::WholeOutput;
use super::state::{ParsedRequest, TextCall};
use super::{options, structured, tools};
use object::{EchoedFields, ResponseObject};

/// Bytes that a response takes for a log probability: it is told whole at the end, also of a stream.
const SCORE_BYTES: u64 = 1_280;

/// Most values of `include`.
const MAX_INCLUDED: usize = 16;

/// The one value of `include` that adds something to the answer.
const WITH_LOGPROBS: &str = "message.output_text.logprobs";

/// Answers a request.
pub(super) async fn create(
    (State(state), caller, headers, body): TextCall,
) -> Result<Response, ApiError> {
    let ((request, echoed), reading) = state.read(body, read).await?;
    let started = state.start_one(request, &caller, &headers, reading);
    let (request, parts) = started.await?;
    let id = Extension(RequestId(request.id.clone()));
    let response = ResponseObject { request, echoed };
    if response.request.delivery.stream {
        return Ok((id, events::respond(response, parts)).into_response());
    }
    let (text, logprobs) = (&response.request.text, response.request.logprobs);
    let output = WholeOutput::collect(parts, text, logprobs).await?;
    Ok((id, Json(response.whole(&output))).into_response())
}

/// Reads a request's body. The second part holds the fields that the answer repeats.
pub(super) fn read(body: &[u8]) -> Result<(ParsedRequest, EchoedFields), BadField> {
    let mut fields = JsonFields::of_body(body)?;
    let (mut request, delivery) = options::read(&mut fields)?;
    if request.max_tokens.is_some() {
        return Err(BadField::new("max_tokens", "is max_output_tokens here"));
    }
    if delivery.choices > 1 {
        return Err(BadField::new(
            "n",
            "a response has one output; leave it out",
        ));
    }
    if delivery.report_rounds {
        let problem = "a response tells no rounds; leave it out";
        return Err(BadField::new(options::REPORT_ROUNDS, problem));
    }
    if delivery.token_ids {
        let problem = "a response has none; leave it out";
        return Err(BadField::new("return_token_ids", problem));
    }
    request.max_tokens = fields.take("max_output_tokens")?;
    let instructions: Option<String> = fields.take("instructions")?;
    request.messages = items::input(&mut fields)?;
    if let Some(instructions) = &instructions {
        request
            .messages
            .insert(0, items::turn("system", instructions));
    }
    let top: Option<u32> = fields.take("top_logprobs")?;
    let include = fields.take_by("include", |json| list(json, MAX_INCLUDED))?;
    let mut include: Vec<String> = include.unwrap_or_default();
    // Some clients always send this value. It adds nothing for models that do not reason.
    include.retain(|name| name != "reasoning.encrypted_content");
    if let Some(other) = include.iter().find(|name| *name != WITH_LOGPROBS) {
        let other = quoted(other);
        let problem = format!("'{other}' is not supported, expected {WITH_LOGPROBS}");
        return Err(BadField::new("include", problem));
    }
    request.top_logprobs = top.unwrap_or_default();
    request.logprobs = request.top_logprobs > 0 || !include.is_empty();
    let (mut format, mut given) = (None, None);
    if let Some(mut text) = fields.take_object("text")? {
        format = text.raw("format");
        given = structured::format(&mut text, "format", "text.format")?;
        text.only("verbosity", &[Value::from("medium")])?;
        text.finish()?;
    }
    let grammar = structured::read(&mut fields, given, &mut request)?;
    let echoed = EchoedFields::of(&request, instructions, format, &fields);
    let warnings = tools::read(&mut fields, &mut request)?;
    request.template_arguments = template_arguments(&mut fields)?;
    without_state(&mut fields)?;
    fields.finish()?;
    let scores = u64::from(request.top_logprobs) + 1;
    let request = ParsedRequest {
        echo: false,
        kept_per_token: if request.logprobs {
            SCORE_BYTES * scores
        } else {
            0
        },
        request,
        delivery,
        names: [
            ("prompt", "input"),
            ("messages", "input"),
            ("max_tokens", "max_output_tokens"),
            (grammar::FIELD, grammar),
        ]
        .into_iter()
        .chain(tools::NAMES)
        .collect(),
        warnings,
        prompts: vec![None],
    };
    Ok((request, echoed))
}

/// Reads how much the model is to think.
fn template_arguments(fields: &mut JsonFields<'_>) -> Result<Option<json::Object>, BadField> {
    let mut arguments = options::template_arguments(fields)?;
    if let Some(mut reasoning) = fields.take_object("reasoning")?
        && let Some(effort) = reasoning.take::<String>("effort")?
    {
        options::set_effort(&effort, &mut arguments);
    }
    Ok((!arguments.is_empty()).then(|| json::to_wire(&arguments)))
}

/// Refuses fields that ask for stored state.
fn without_state(fields: &mut JsonFields<'_>) -> Result<(), BadField> {
    for (name, neutral) in [
        ("background", vec![Value::from(false)]),
        ("truncation", vec![Value::from("disabled")]),
    ] {
        fields.only(name, &neutral)?;
    }
    for name in ["previous_response_id", "conversation"] {
        if fields.has(name) {
            let problem = "nothing is stored here; send the whole conversation as input";
            return Err(BadField::new(name, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_json(value: &Value) -> Result<(ParsedRequest, EchoedFields), BadField> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn input_is_a_text_or_messages_after_the_instructions() {
        let parts = json!([{ "type": "input_text", "text": "a" }, { "type": "output_text", "text": "b", "annotations": [], "parsed": null }]);
        for (input, expected) in [
            (json!("hello"), vec![("user", "hello")]),
            (
                json!([{ "role": "user", "content": "x" }, { "id": "msg_1", "status": "completed", "phase": 1, "type": "message", "role": "assistant", "content": parts }]),
                vec![("user", "x"), ("assistant", "a\nb")],
            ),
        ] {
            let request =
                json!({ "input": input, "instructions": "be brief", "max_output_tokens": 5 });
            let (parsed, _) = read_json(&request).expect("in order");
            let turns = parsed.request.messages.iter();
            let turns: Vec<_> = turns
                .map(|turn| (&turn.role[..], &turn.content[..]))
                .collect();
            assert_eq!(turns[0], ("system", "be brief"));
            assert_eq!(turns[1..], expected);
            assert_eq!(parsed.request.max_tokens, Some(5));
        }
    }

    #[test]
    fn log_probabilities_come_by_number_or_by_name() {
        for (more, expected) in [
            (json!({}), (false, 0)),
            (json!({ "top_logprobs": 2 }), (true, 2)),
            (json!({ "include": [WITH_LOGPROBS] }), (true, 0)),
        ] {
            let mut request = json!({ "input": "x" });
            for (name, value) in more.as_object().expect("an object") {
                request[name] = value.clone();
            }
            let (parsed, _) = read_json(&request).expect("in order");
            let request = parsed.request;
            assert_eq!((request.logprobs, request.top_logprobs), expected);
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (name, value) in [
            ("input", json!(3)),
            ("input", json!(null)),
            ("input", json!([])),
            ("previous_response_id", json!("resp_1")),
            ("conversation", json!("c")),
            ("tools", json!({})),
            ("reasoning", json!("high")),
            ("background", json!(true)),
            ("truncation", json!("auto")),
            ("include", json!(["file_search_call.results"])),
            ("max_tokens", json!(3)),
            ("n", json!(2)),
            ("messages", json!([])),
        ] {
            let mut request = json!({ "input": "x" });
            request[name] = value;
            assert_eq!(
                read_json(&request).err().map(|bad| bad.field).as_deref(),
                Some(name)
            );
        }
        for (request, field) in [
            (
                json!({ "input": "x", "text": { "format": { "type": "xml" } } }),
                "text.format.type",
            ),
            (
                json!({ "input": [{ "type": "function_call_output", "output": "1" }] }),
                "input.0.call_id",
            ),
            (
                json!({ "input": [{ "type": "item_reference", "id": "msg_1" }] }),
                "input.0.type",
            ),
            (
                json!({ "input": [{ "role": "user", "content": [{ "type": "input_image", "image_url": "http://x" }] }] }),
                "input.0.content.0.type",
            ),
        ] {
            assert_eq!(
                read_json(&request).err().map(|bad| bad.field).as_deref(),
                Some(field)
            );
        }
    }

    #[test]
    fn calls_and_what_they_came_to_are_items_between_turns() {
        let call = |id: &str| json!({ "type": "function_call", "id": "fc_1", "call_id": id, "name": "f", "arguments": "{}", "status": "completed" });
        let (parsed, _) = read_json(&json!({
            "input": [
                { "role": "user", "content": "x" },
                { "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "hm" }] },
                call("1"), call("2"),
                { "type": "function_call_output", "call_id": "1", "output": "a" },
                { "type": "function_call_output", "call_id": "2", "output": [{ "type": "input_text", "text": "b" }] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "c" }] },
            ],
            "tools": [{ "type": "function", "name": "f", "parameters": { "type": "object" } }, { "type": "namespace" }],
            "tool_choice": { "type": "function", "name": "f" },
        }))
        .expect("in order");
        assert_eq!(parsed.warnings.len(), 1);
        let request = parsed.request;
        assert_eq!((request.tools.len(), &*request.called_tool), (1, "f"));
        let turns: Vec<_> = request
            .messages
            .iter()
            .map(|turn| {
                (
                    &*turn.role,
                    &*turn.content,
                    &*turn.tool_call_id,
                    turn.tool_calls.len(),
                    &*turn.reasoning,
                )
            })
            .collect();
        assert_eq!(
            turns,
            [
                ("user", "x", "", 0, ""),
                ("assistant", "", "", 2, "hm"),
                ("tool", "a", "1", 0, ""),
                ("tool", "b", "2", 0, ""),
                ("assistant", "c", "", 0, ""),
            ]
        );
    }
}
