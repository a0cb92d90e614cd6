//! The form of requests: their route, and their fields but for the prompt.

use anyhow::{Context, ensure};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Fields that are this program's to set.
const OWN: [&str; 7] = [
    "model",
    "prompt",
    "messages",
    "n",
    "stream",
    "stream_options",
    "max_tokens",
];

/// What all requests have in common.
#[derive(Clone, Debug)]
pub(super) struct RequestForm {
    is_chat: bool,
    fields: Map<String, Value>,
}

impl RequestForm {
    /// Returns that of streams from `model`, of chats or of completions.
    pub(super) fn new(model: &str, is_chat: bool, output_tokens: u32) -> Self {
        let fields = [
            ("model", json!(model)),
            ("max_tokens", json!(output_tokens)),
            ("stream", json!(true)),
            ("stream_options", json!({ "include_usage": true })),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        Self {
            is_chat,
            fields: fields.into_iter().collect(),
        }
    }

    /// Returns the same with the fields of `extra`, a JSON object, over its own; a null takes a field away.
    ///
    /// # Errors
    /// If it is no object, or sets what flags set.
    pub(super) fn with_extra(mut self, extra: &str) -> anyhow::Result<Self> {
        let fields: Map<String, Value> = serde_json::from_str(extra)
            .with_context(|| format!("--extra-body: expected a JSON object, got {extra}"))?;
        for (name, value) in fields {
            let is_taken_away = name == "max_tokens" && value.is_null();
            ensure!(
                is_taken_away || !OWN.contains(&name.as_str()),
                "--extra-body: {name} is set by this command's flags, not here"
            );
            self.set(&name, value);
        }
        Ok(self)
    }

    /// Sets a field; null takes it away.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        if value.is_null() {
            self.fields.shift_remove(name);
        } else {
            self.fields.insert(name.to_owned(), value);
        }
    }

    /// Returns the same with answers of one token, for requests that are about the prompt.
    pub(super) fn of_one_token(&self) -> Self {
        let mut form = self.clone();
        form.set("min_tokens", Value::Null);
        for name in ["max_tokens", "max_completion_tokens"] {
            if form.fields.contains_key(name) {
                form.set(name, json!(1));
            }
        }
        form
    }

    /// Returns the route, behind the server's address.
    pub(super) fn path(&self) -> &'static str {
        if self.is_chat {
            "/chat/completions"
        } else {
            "/completions"
        }
    }

    /// Returns the body of a request with `prompt`.
    pub(super) fn body(&self, prompt: &str) -> Bytes {
        let (name, value) = if self.is_chat {
            ("messages", json!([{ "role": "user", "content": prompt }]))
        } else {
            ("prompt", json!(prompt))
        };
        let mut fields = self.fields.clone();
        fields.insert(name.to_owned(), value);
        Value::Object(fields).to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(form: &RequestForm) -> Value {
        serde_json::from_slice(&form.body("Once")).expect("JSON")
    }

    #[test]
    fn a_request_streams_and_asks_for_its_usage() {
        let form = RequestForm::new("m", false, 9);
        let expected = json!({
            "model": "m", "max_tokens": 9, "stream": true, "stream_options": { "include_usage": true },
            "prompt": "Once",
        });
        assert_eq!((form.path(), body(&form)), ("/completions", expected));
        let form = RequestForm::new("m", true, 9);
        let said = json!([{ "role": "user", "content": "Once" }]);
        assert_eq!(
            (form.path(), &body(&form)["messages"]),
            ("/chat/completions", &said)
        );
        assert_eq!(body(&form).get("prompt"), None);
    }

    #[test]
    fn other_fields_are_added_and_nulls_take_away() {
        let mut form = RequestForm::new("m", false, 9);
        form.set("temperature", json!(0.0));
        let extra = r#"{"temperature": null, "max_tokens": null, "max_completion_tokens": 9, "speculation": {"enabled": false}}"#;
        let form = form.with_extra(extra).expect("fields");
        let body = body(&form);
        assert_eq!(
            (body.get("temperature"), body.get("max_tokens")),
            (None, None)
        );
        assert_eq!(body["max_completion_tokens"], 9);
        assert_eq!(body["speculation"]["enabled"], false);
        let short = form.of_one_token();
        let short = self::body(&short);
        assert_eq!(
            (&short["max_completion_tokens"], short.get("max_tokens")),
            (&json!(1), None)
        );
    }

    #[test]
    fn what_flags_set_is_not_set_twice() {
        for (extra, part) in [
            ("[]", "--extra-body: expected a JSON object"),
            ("x", "--extra-body: expected a JSON object"),
            (r#"{"stream": false}"#, "--extra-body: stream is set by"),
            (r#"{"max_tokens": 3}"#, "--extra-body: max_tokens is set by"),
        ] {
            let form = RequestForm::new("m", false, 9);
            let error = form.with_extra(extra).expect_err(extra).to_string();
            assert!(error.starts_with(part), "{error}");
        }
    }
}
