//! Prompt and output of a request whose text may be seen, as the conventions write them.

use serde_json::{Value, json};
use v1::generate_request::Prompt;
use wire::v1;

/// What was asked and what was answered.
#[derive(Debug)]
pub(super) struct CapturedText {
    input: Vec<Value>,
    output: String,
}

impl CapturedText {
    /// The prompt of `request`, if it is text.
    pub(super) fn of(request: &v1::GenerateRequest) -> Self {
        let messages = request.messages.iter();
        let mut input: Vec<_> = messages.map(|it| said(&it.role, &it.content)).collect();
        if let Some(Prompt::Text(text)) = &request.prompt {
            input.push(said("user", text));
        }
        Self {
            input,
            output: String::new(),
        }
    }

    pub(super) fn emitted(&mut self, text: &str) {
        self.output.push_str(text);
    }

    /// The prompt as JSON.
    pub(super) fn input(&self) -> String {
        json!(self.input).to_string()
    }

    /// The output as JSON, and why it ended.
    pub(super) fn output(&self, finish_reason: &str) -> String {
        let mut message = said("assistant", &self.output);
        message["finish_reason"] = finish_reason.into();
        json!([message]).to_string()
    }
}

/// Who said what.
fn said(role: &str, content: &str) -> Value {
    json!({ "role": role, "parts": [{ "type": "text", "content": content }] })
}
