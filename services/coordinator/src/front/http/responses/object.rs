//! The response object.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::bounds::MAX_TOOLS_BYTES;
use wire::v1;

use crate::front::http::fields::JsonFields;
use crate::front::http::logprobs;
use crate::front::http::output::{OutputItem, OutputProgress, OutputToken, WholeOutput};
use crate::front::http::report;
use crate::front::http::state::RunningRequest;

/// Fields of the request that its response repeats.
pub(in crate::front::http) struct EchoedFields {
    instructions: Option<String>,
    max_output_tokens: Option<u32>,
    temperature: f32,
    top_p: f32,
    top_logprobs: u32,
    user: Option<String>,
    /// As they were given: the format of its text, and what of tools.
    format: Value,
    tools: Value,
    tool_choice: Value,
    parallel_tool_calls: Value,
    reasoning: Value,
}

impl EchoedFields {
    /// Returns what is repeated of `request`, and of the fields that are still to be read.
    pub(super) fn of(
        request: &v1::GenerateRequest,
        instructions: Option<String>,
        format: Option<&RawValue>,
        fields: &JsonFields<'_>,
    ) -> Self {
        let sampling = request.sampling.as_ref();
        let as_given = |given: Option<&RawValue>, usual: Value| {
            let given = given.filter(|given| given.get().len() <= MAX_TOOLS_BYTES);
            let given = given.and_then(|given| serde_json::from_str(given.get()).ok());
            given.unwrap_or(usual)
        };
        Self {
            instructions,
            max_output_tokens: request.max_tokens,
            temperature: sampling.and_then(|given| given.temperature).unwrap_or(1.0),
            top_p: sampling.and_then(|given| given.top_p).unwrap_or(1.0),
            top_logprobs: request.top_logprobs,
            user: Some(request.tenant.clone()).filter(|user| !user.is_empty()),
            format: as_given(format, json!({ "type": "text" })),
            tools: as_given(fields.raw("tools"), json!([])),
            tool_choice: as_given(fields.raw("tool_choice"), json!("auto")),
            parallel_tool_calls: as_given(fields.raw("parallel_tool_calls"), json!(true)),
            reasoning: as_given(
                fields.raw("reasoning"),
                json!({ "effort": null, "summary": null }),
            ),
        }
    }
}

/// The state of a response, which also ends the type of the event that reports it.
pub(super) type ResponseStatus = &'static str;

/// The state of a response whose output has reached `max_output_tokens`.
const INCOMPLETE: ResponseStatus = "incomplete";

/// Returns the state of a response whose output has ended.
pub(super) fn status_of(output: &OutputProgress) -> ResponseStatus {
    match output.finished.reason() {
        v1::FinishReason::Length => INCOMPLETE,
        _ => "completed",
    }
}

/// The response to a request.
pub(super) struct ResponseObject {
    pub(super) request: RunningRequest,
    pub(super) echoed: EchoedFields,
}

impl ResponseObject {
    /// Returns the response with these items.
    pub(super) fn object(&self, status: ResponseStatus, output: &[Value]) -> Value {
        let Self { request, echoed } = self;
        let reason = (status == INCOMPLETE).then(|| json!({ "reason": "max_output_tokens" }));
        json!({
            "id": format!("resp_{}", request.id),
            "object": "response",
            "created_at": request.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": reason,
            "instructions": echoed.instructions,
            "max_output_tokens": echoed.max_output_tokens,
            "model": request.model,
            "output": output,
            "parallel_tool_calls": echoed.parallel_tool_calls,
            "previous_response_id": null,
            "reasoning": echoed.reasoning,
            "store": false,
            "temperature": echoed.temperature,
            "text": { "format": echoed.format },
            "tool_choice": echoed.tool_choice,
            "tools": echoed.tools,
            "top_logprobs": echoed.top_logprobs,
            "top_p": echoed.top_p,
            "truncation": "disabled",
            "usage": null,
            "user": echoed.user,
            "metadata": {},
        })
    }

    /// Returns the response of an output that has ended.
    pub(super) fn whole(&self, output: &WholeOutput) -> Value {
        let status = status_of(&output.progress);
        let mut scores = self.logprobs(&output.tokens);
        let items = output.items.iter().enumerate().map(|(index, item)| {
            // All tokens come with the first text.
            let scores = match item {
                OutputItem::Text(_) => std::mem::replace(&mut scores, json!([])),
                OutputItem::Reasoning(_) | OutputItem::Call(_) => json!([]),
            };
            self.item(index, status, item, &scores)
        });
        let mut items: Vec<Value> = items.collect();
        if items.is_empty() {
            items.push(self.item(0, status, &OutputItem::Text(String::new()), &scores));
        }
        let mut response = self.object(status, &items);
        report::add(&mut response, &[&output.progress], 1, true);
        report::warn(&mut response, &self.request.warnings, &[&output.progress]);
        let usage = response["usage"].take();
        let used = output.progress.used();
        let reasoning_tokens = used.map_or(0, |used| used.reasoning_tokens);
        response["usage"] = json!({
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {
                "cached_tokens": report::cached_tokens(&[&output.progress], 1),
            },
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": { "reasoning_tokens": reasoning_tokens },
            "total_tokens": usage["total_tokens"],
        });
        response
    }

    /// Returns the identifier of item number `index`.
    pub(super) fn item_id(&self, index: usize, item: &OutputItem) -> String {
        let kind = match item {
            OutputItem::Text(_) => "msg",
            OutputItem::Reasoning(_) => "rs",
            OutputItem::Call(_) => "fc",
        };
        format!("{kind}_{}_{index}", self.request.id)
    }

    /// Returns item number `index`, whose text has the log probabilities `scores`.
    pub(super) fn item(
        &self,
        index: usize,
        status: ResponseStatus,
        item: &OutputItem,
        scores: &Value,
    ) -> Value {
        let id = self.item_id(index, item);
        match item {
            OutputItem::Text(_) => json!({
                "id": id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [part(item, scores)],
            }),
            OutputItem::Reasoning(_) => json!({
                "id": id,
                "type": "reasoning",
                "status": status,
                "summary": [],
                "content": [part(item, scores)],
            }),
            OutputItem::Call(call) => json!({
                "id": id,
                "type": "function_call",
                "status": status,
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }),
        }
    }

    /// Returns the log probabilities of `tokens`, if they were requested; else an empty list.
    pub(super) fn logprobs(&self, tokens: &[OutputToken]) -> Value {
        if self.request.logprobs {
            logprobs::of_tokens(&self.request.text, tokens)
        } else {
            json!([])
        }
    }
}

/// Returns the one part of an item that is text; null for a call, which has none.
pub(super) fn part(item: &OutputItem, logprobs: &Value) -> Value {
    match item {
        OutputItem::Text(text) => {
            json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": logprobs })
        }
        OutputItem::Reasoning(text) => json!({ "type": "reasoning_text", "text": text }),
        OutputItem::Call(_) => Value::Null,
    }
}
