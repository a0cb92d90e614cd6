//! The response object.

use serde_json::{Value, json};
use text::ServedText;
use wire::v1;

use crate::front::http::logprobs;
use crate::front::http::output::{Output, OutputToken, WholeOutput};
use crate::front::http::report;
use crate::front::http::run::{Admitted, unix_time};

/// Fields of the request that its response repeats.
pub(in crate::front::http) struct Echoed {
    instructions: Option<String>,
    max_output_tokens: Option<u32>,
    temperature: f32,
    top_p: f32,
    top_logprobs: u32,
    user: Option<String>,
}

impl Echoed {
    pub(super) fn of(request: &v1::GenerateRequest, instructions: Option<String>) -> Self {
        let sampling = request.sampling.as_ref();
        Self {
            instructions,
            max_output_tokens: request.max_tokens,
            temperature: sampling.and_then(|given| given.temperature).unwrap_or(1.0),
            top_p: sampling.and_then(|given| given.top_p).unwrap_or(1.0),
            top_logprobs: request.top_logprobs,
            user: Some(request.tenant.clone()).filter(|user| !user.is_empty()),
        }
    }
}

/// The state of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    InProgress,
    Completed,
    /// The output has reached max_output_tokens.
    Incomplete,
    Failed,
}

impl Stage {
    /// The value of `status`, which also ends the type of the event that reports the state.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }

    /// The state of a response whose output has ended.
    pub(super) fn of(output: &Output) -> Self {
        match output.finished.reason() {
            v1::FinishReason::Length => Self::Incomplete,
            _ => Self::Completed,
        }
    }
}

/// The fields that a response has in all its states.
pub(super) struct Head {
    id: String,
    pub(super) item_id: String,
    model: String,
    created: u64,
    echoed: Echoed,
}

impl Head {
    pub(super) fn new(admitted: &mut Admitted, echoed: Echoed) -> Self {
        Self {
            id: format!("resp_{}", admitted.id),
            item_id: format!("msg_{}", admitted.id),
            model: std::mem::take(&mut admitted.model),
            created: unix_time(),
            echoed,
        }
    }

    /// The response with these items.
    pub(super) fn object(&self, stage: Stage, output: &[Value]) -> Value {
        let Self { echoed, .. } = self;
        let reason = (stage == Stage::Incomplete).then(|| json!({ "reason": "max_output_tokens" }));
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": stage.name(),
            "background": false,
            "error": null,
            "incomplete_details": reason,
            "instructions": echoed.instructions,
            "max_output_tokens": echoed.max_output_tokens,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": false,
            "previous_response_id": null,
            "reasoning": { "effort": null, "summary": null },
            "store": false,
            "temperature": echoed.temperature,
            "text": { "format": { "type": "text" } },
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

    /// The response of an output that has ended. `of_tokens` gives the texts of tokens if log probabilities were requested.
    pub(super) fn whole(&self, output: &WholeOutput, of_tokens: Option<&ServedText>) -> Value {
        let stage = Stage::of(&output.counts);
        let logprobs = self::logprobs(&output.tokens, of_tokens);
        let item = self.item(stage, &[part(&output.text, &logprobs)]);
        let mut response = self.object(stage, &[item]);
        report::add(&mut response, &[&output.counts], 1);
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

    /// The one item of a response.
    pub(super) fn item(&self, stage: Stage, content: &[Value]) -> Value {
        json!({
            "id": self.item_id,
            "type": "message",
            "status": stage.name(),
            "role": "assistant",
            "content": content,
        })
    }
}

/// The one part of an item.
pub(super) fn part(text: &str, logprobs: &Value) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": logprobs })
}

/// The log probabilities of `tokens`, if they were requested; else none.
pub(super) fn logprobs(tokens: &[OutputToken], text: Option<&ServedText>) -> Value {
    text.map_or_else(|| json!([]), |text| logprobs::of_tokens(text, tokens))
}
