//! The response object.

use serde_json::{Value, json};
use wire::v1;

use crate::front::http::logprobs;
use crate::front::http::output::{OutputProgress, OutputToken, WholeOutput};
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
    /// The format of its text, as it was given.
    pub(super) format: Value,
}

impl EchoedFields {
    pub(super) fn of(request: &v1::GenerateRequest, instructions: Option<String>) -> Self {
        let sampling = request.sampling.as_ref();
        Self {
            instructions,
            max_output_tokens: request.max_tokens,
            temperature: sampling.and_then(|given| given.temperature).unwrap_or(1.0),
            top_p: sampling.and_then(|given| given.top_p).unwrap_or(1.0),
            top_logprobs: request.top_logprobs,
            user: Some(request.tenant.clone()).filter(|user| !user.is_empty()),
            format: json!({ "type": "text" }),
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
    /// Returns the identifier of its one item.
    pub(super) fn item_id(&self) -> String {
        format!("msg_{}", self.request.id)
    }

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
            "parallel_tool_calls": false,
            "previous_response_id": null,
            "reasoning": { "effort": null, "summary": null },
            "store": false,
            "temperature": echoed.temperature,
            "text": { "format": echoed.format },
            "tool_choice": "none",
            "tools": [],
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
        let part = part(&output.text, &self.logprobs(&output.tokens));
        let item = self.item(status, &[part]);
        let mut response = self.object(status, &[item]);
        report::add(&mut response, &[&output.progress], 1, true);
        let usage = response["usage"].take();
        response["usage"] = json!({
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": usage["total_tokens"],
        });
        response
    }

    /// Returns the one item of a response.
    pub(super) fn item(&self, status: ResponseStatus, content: &[Value]) -> Value {
        json!({
            "id": self.item_id(),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        })
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

/// Returns the one part of an item.
pub(super) fn part(text: &str, logprobs: &Value) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": logprobs })
}
