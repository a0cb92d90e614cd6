//! Prompt and output of a request whose text may be seen, as the conventions write them.

use v1::generate_request::Prompt;
use wire::v1;

/// What was asked and what was answered.
#[derive(Debug)]
pub(super) struct CapturedText {
    /// Who said what.
    input: Vec<(String, String)>,
    output: String,
}

impl CapturedText {
    /// The prompt of `request`, if it is text.
    pub(super) fn of(request: &v1::GenerateRequest) -> Self {
        let said = |message: &v1::ChatMessage| (message.role.clone(), message.content.clone());
        let mut input: Vec<_> = request.messages.iter().map(said).collect();
        if let Some(Prompt::Text(text)) = &request.prompt {
            input.push(("user".to_owned(), text.clone()));
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
        let message = |(role, content): &(String, String)| serde_json::json!({ "role": role, "parts": [{ "type": "text", "content": content }] });
        let messages: Vec<_> = self.input.iter().map(message).collect();
        serde_json::Value::from(messages).to_string()
    }

    /// The output as JSON, and why it ended.
    pub(super) fn output(&self, finish_reason: &str) -> String {
        serde_json::json!([{
            "role": "assistant",
            "parts": [{ "type": "text", "content": self.output }],
            "finish_reason": finish_reason,
        }])
        .to_string()
    }
}
