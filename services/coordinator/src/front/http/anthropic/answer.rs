//! Answers in Anthropic's form, whole and as events.

use axum::response::Response;
use axum::response::sse::Event;
use serde_json::{Value, json};
use wire::v1;

use crate::driver::ResponseStream;
use crate::front::http::answer::respond_events;
use crate::front::http::error::ApiError;
use crate::front::http::output::{OutputDelta, OutputItem, OutputProgress, Said, WholeOutput};
use crate::front::http::report;
use crate::front::http::state::RunningRequest;

/// The message that answers a request.
pub(super) struct MessageAnswer {
    pub(super) request: RunningRequest,
}

/// A streamed message under way.
struct MessageEvents {
    answer: MessageAnswer,
    output: WholeOutput,
    has_begun: bool,
}

/// Returns why an output ended: the reason, and the stop text if that is it.
fn stop_reason(output: &OutputProgress) -> (&'static str, Option<&str>) {
    let finished = &output.finished;
    match finished.reason() {
        v1::FinishReason::Length => ("max_tokens", None),
        v1::FinishReason::ToolCalls => ("tool_use", None),
        _ if !finished.stop_text.is_empty() => ("stop_sequence", Some(&finished.stop_text)),
        _ => ("end_turn", None),
    }
}

/// Returns a block with what was said of it.
fn block(item: &OutputItem) -> Value {
    match item {
        OutputItem::Text(text) => json!({ "type": "text", "text": text }),
        OutputItem::Reasoning(text) => {
            json!({ "type": "thinking", "thinking": text, "signature": "" })
        }
        OutputItem::Call(call) => {
            // Arguments that were cut off are no JSON.
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
        }
    }
}

fn event(mut data: Value, name: &str) -> Event {
    data["type"] = json!(name);
    Event::default().event(name).data(data.to_string())
}

impl MessageAnswer {
    fn message(&self, content: &[Value], output: &OutputProgress) -> Value {
        json!({
            "id": format!("msg_{}", self.request.id),
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {
                "input_tokens": output.started.prompt_tokens,
                "output_tokens": output.tokens,
            },
        })
    }

    /// Returns a whole answer.
    pub(super) fn whole(&self, output: &WholeOutput) -> Value {
        let content: Vec<Value> = output.items.iter().map(block).collect();
        let mut message = self.message(&content, &output.progress);
        let (reason, stop_text) = stop_reason(&output.progress);
        message["stop_reason"] = json!(reason);
        message["stop_sequence"] = json!(stop_text);
        self.report(&mut message, &output.progress);
        message
    }

    /// Adds what was in effect and how speculation went.
    fn report(&self, message: &mut Value, output: &OutputProgress) {
        report::add(message, &[output], 1, false);
        report::warn(message, &self.request.warnings, &[output]);
    }

    /// Returns the answer as events; its one output comes in `parts`.
    pub(super) fn events(self, parts: ResponseStream) -> Response {
        let events = MessageEvents {
            answer: self,
            output: WholeOutput::default(),
            has_begun: false,
        };
        respond_events(Vec::new(), events, parts, MessageEvents::take)
    }
}

impl MessageEvents {
    /// Returns the events that a part of the answer comes to, and whether they are the last.
    fn take(&mut self, message: v1::GenerateResponse) -> (Vec<Event>, bool) {
        let mut events = Vec::new();
        let progress = &mut self.output.progress;
        let delta = progress.add(message.part, &self.answer.request.text);
        if !self.has_begun && delta.is_ok() {
            self.has_begun = true;
            let message = self.answer.message(&[], &self.output.progress);
            events.push(event(json!({ "message": message }), "message_start"));
        }
        match delta {
            Ok(OutputDelta::Piece(said, _)) => {
                events.extend(said.into_iter().flat_map(|said| self.say(said)));
                (events, false)
            }
            Ok(OutputDelta::End) => {
                events.extend(self.end_block());
                let output = &self.output.progress;
                let (reason, stop_text) = stop_reason(output);
                let delta = json!({ "stop_reason": reason, "stop_sequence": stop_text });
                let mut last =
                    json!({ "delta": delta, "usage": { "output_tokens": output.tokens } });
                self.answer.report(&mut last, output);
                events.push(event(last, "message_delta"));
                events.push(event(json!({}), "message_stop"));
                (events, true)
            }
            Ok(OutputDelta::Prompt(_) | OutputDelta::Round(_) | OutputDelta::Nothing) => {
                (events, false)
            }
            Err(status) => {
                let error = ApiError::from(status).body()["error"].clone();
                let error = json!({ "type": "api_error", "message": error["message"] });
                (vec![event(json!({ "error": error }), "error")], true)
            }
        }
    }

    /// Returns the events of a piece: the beginning of a block, if it is of another than the last, and what it adds.
    fn say(&mut self, said: Said) -> Vec<Event> {
        let mut events = Vec::new();
        let is_of_last = self.output.goes_on_with(&said);
        if !is_of_last {
            events.extend(self.end_block());
        }
        self.output.say(vec![said.clone()]);
        let index = self.output.items.len().saturating_sub(1);
        let (empty, delta) = match said {
            Said::Text(text) => (
                OutputItem::Text(String::new()),
                json!({ "type": "text_delta", "text": text }),
            ),
            Said::Reasoning(text) => (
                OutputItem::Reasoning(String::new()),
                json!({ "type": "thinking_delta", "thinking": text }),
            ),
            Said::Arguments(_, json) => (
                OutputItem::Text(String::new()),
                json!({ "type": "input_json_delta", "partial_json": json }),
            ),
            Said::Call(_, call) => (OutputItem::Call(call), Value::Null),
        };
        if !is_of_last {
            let begun = json!({ "index": index, "content_block": block(&empty) });
            events.push(event(begun, "content_block_start"));
        }
        if !delta.is_null() {
            let delta = json!({ "index": index, "delta": delta });
            events.push(event(delta, "content_block_delta"));
        }
        events
    }

    fn end_block(&self) -> Option<Event> {
        let index = self.output.items.len().checked_sub(1)?;
        Some(event(json!({ "index": index }), "content_block_stop"))
    }
}
