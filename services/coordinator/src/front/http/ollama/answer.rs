//! Answers in Ollama's forms: lines of JSON, or one object.

use jiff::Timestamp;
use serde_json::{Value, json};
use wire::v1;

use crate::front::http::error::ApiError;
use crate::front::http::output::{OutputDelta, OutputItem, OutputProgress, Said, WholeOutput};
use crate::front::http::report;
use crate::front::http::state::RunningRequest;

/// Which of the forms an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Chat,
    Generate,
}

/// The answer to a request.
pub(super) struct LineAnswer {
    pub(super) request: RunningRequest,
    pub(super) form: Form,
}

/// A streamed answer under way.
pub(super) struct Lines {
    answer: LineAnswer,
    output: WholeOutput,
    /// Items of the output that were sent: calls are sent whole.
    sent: usize,
}

/// Returns a time, in seconds since 1970, as it is written in answers.
pub(super) fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|it| Timestamp::from_second(it).ok());
    time.map_or_else(String::new, |time| time.to_string())
}

fn call(call: &v1::ToolCall) -> Value {
    // Arguments that were cut off are no JSON.
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({ "function": { "name": call.name, "arguments": arguments } })
}

impl LineAnswer {
    /// Returns an object of the answer, with what is said.
    fn line(&self, text: &str, thinking: &str, calls: &[Value]) -> Value {
        let mut line = json!({
            "model": self.request.model,
            "created_at": time(self.request.created),
            "done": false,
        });
        if self.form == Form::Generate {
            line["response"] = json!(text);
            if !thinking.is_empty() {
                line["thinking"] = json!(thinking);
            }
            return line;
        }
        let mut message = json!({ "role": "assistant", "content": text });
        if !thinking.is_empty() {
            message["thinking"] = json!(thinking);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        line["message"] = message;
        line
    }

    /// Makes `line` the last one.
    fn end(&self, line: &mut Value, output: &OutputProgress) {
        let timing = output.finished.timing.unwrap_or_default();
        let nanos = |ms: f64| (ms * 1e6) as u64;
        let rest = (timing.total_ms - timing.time_to_first_token_ms).max(0.0);
        let reason = match output.finished.reason() {
            v1::FinishReason::Length => "length",
            _ => "stop",
        };
        line["done"] = json!(true);
        line["done_reason"] = json!(reason);
        line["total_duration"] = json!(nanos(timing.total_ms));
        line["load_duration"] = json!(0);
        line["prompt_eval_count"] = json!(output.started.prompt_tokens);
        line["prompt_eval_duration"] = json!(nanos(timing.time_to_first_token_ms));
        line["eval_count"] = json!(output.tokens);
        line["eval_duration"] = json!(nanos(rest));
        report::add(line, &[output], 1, false);
        report::warn(line, &self.request.warnings, &[output]);
    }

    /// Returns a whole answer.
    pub(super) fn whole(&self, output: &WholeOutput) -> Value {
        let calls: Vec<Value> = output.calls().map(call).collect();
        let mut line = self.line(&output.text(), &output.reasoning(), &calls);
        self.end(&mut line, &output.progress);
        line
    }
}

impl Lines {
    pub(super) fn new(answer: LineAnswer) -> Self {
        Self {
            answer,
            output: WholeOutput::default(),
            sent: 0,
        }
    }

    /// Returns the lines that a part of the answer comes to, and whether they are the last.
    pub(super) fn take(&mut self, message: v1::GenerateResponse) -> (Vec<Value>, bool) {
        let (progress, text) = (&mut self.output.progress, &self.answer.request.text);
        match progress.add(message.part, text) {
            Ok(OutputDelta::Piece(said, _)) => (
                said.into_iter().flat_map(|said| self.say(said)).collect(),
                false,
            ),
            Ok(OutputDelta::End) => {
                let mut lines = self.calls(self.output.items.len());
                let mut last = self.answer.line("", "", &[]);
                self.answer.end(&mut last, &self.output.progress);
                lines.push(last);
                (lines, true)
            }
            Ok(OutputDelta::Prompt(_) | OutputDelta::Round(_) | OutputDelta::Nothing) => {
                (Vec::new(), false)
            }
            Err(status) => {
                let message = ApiError::from(status).body()["error"]["message"].clone();
                (vec![json!({ "error": message })], true)
            }
        }
    }

    /// Returns the lines of a piece: of the calls before it, which are whole, and of what it adds itself.
    fn say(&mut self, said: Said) -> Vec<Value> {
        self.output.say(vec![said.clone()]);
        let last = self.output.items.len().saturating_sub(1);
        let mut lines = self.calls(last);
        match said {
            Said::Text(text) => lines.push(self.answer.line(&text, "", &[])),
            Said::Reasoning(text) => lines.push(self.answer.line("", &text, &[])),
            Said::Call(..) | Said::Arguments(..) => {}
        }
        lines
    }

    /// Returns a line for each call before item number `end` that was not sent.
    fn calls(&mut self, end: usize) -> Vec<Value> {
        let items = self.output.items.get(self.sent..end).unwrap_or_default();
        let calls = items.iter().filter_map(|item| match item {
            OutputItem::Call(found) => Some(self.answer.line("", "", &[call(found)])),
            OutputItem::Text(_) | OutputItem::Reasoning(_) => None,
        });
        let calls = calls.collect();
        self.sent = self.sent.max(end);
        calls
    }
}
