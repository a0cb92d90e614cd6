//! Answers to requests for text: whole, or piece by piece as `events`.

mod events;
mod whole;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use wire::v1::generate_request::Prompt;

use super::error::ApiError;
use super::guard::RequestId;
use super::logprobs::Form;
use super::output::{OutputToken, WholeOutput};
use super::run::{Admitted, unix_time};

/// How an answer is laid out: as a completion, or as a turn of a chat.
pub(super) trait Layout: Copy + Send + Sync + 'static {
    /// The prefix of an answer's identifier.
    const PREFIX: &'static str;
    /// The values of `object` in a whole answer and in a piece of one.
    const OBJECTS: (&'static str, &'static str);

    /// The first piece of an output, if it has one before any text.
    fn opening(self) -> Option<Value>;
    /// A piece of an output, or all of it where `is_whole`.
    fn text(self, text: &str, is_whole: bool) -> Value;
    /// The end of an output, which adds no text.
    fn closing(self) -> Value;
    /// The form of its log probabilities.
    fn logprobs(self) -> &'static Form;
}

/// A request that was let in, and how it is answered.
pub(super) struct Answering<L> {
    pub(super) layout: L,
    pub(super) admitted: Admitted,
    /// What stands before the text of each output: its prompt, where that is echoed.
    before: Vec<String>,
}

/// The fields that all pieces of an answer have in common.
struct Head {
    id: String,
    model: String,
    created: u64,
}

impl Head {
    fn object(&self, object: &str, choices: &[Value]) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }
}

impl<L: Layout> Answering<L> {
    pub(super) fn new(layout: L, admitted: Admitted) -> Self {
        Self {
            layout,
            before: vec![String::new(); admitted.outputs.len()],
            admitted,
        }
    }

    /// Has each output begin with its prompt.
    pub(super) fn echo(&mut self) {
        let admitted = &self.admitted;
        let prompts = admitted.prompts.iter().flatten();
        let texts = prompts.map(|prompt| match prompt {
            Prompt::Text(prompt) => prompt.clone(),
            // The output begins with a character that is incomplete at the end of its prompt.
            Prompt::TokenIds(tokens) => admitted.text.text_before(&tokens.ids),
        });
        let choices = admitted.delivery.choices as usize;
        let each = |text: String| std::iter::repeat_n(text, choices);
        self.before = texts.flat_map(each).collect();
    }

    /// The response.
    ///
    /// # Errors
    /// Of a whole answer, what one of its outputs failed with.
    pub(super) async fn respond(self) -> Result<Response, ApiError> {
        let id = RequestId(self.admitted.id.clone());
        let mut response = self.answer().await?;
        response.extensions_mut().insert(id);
        Ok(response)
    }

    async fn answer(mut self) -> Result<Response, ApiError> {
        let head = Head {
            id: format!("{}{}", L::PREFIX, self.admitted.id),
            model: std::mem::take(&mut self.admitted.model),
            created: unix_time(),
        };
        if self.admitted.delivery.stream {
            return Ok(super::events::respond(self.events(head)));
        }
        let text = Arc::clone(&self.admitted.text);
        let keeps_tokens = self.admitted.keeps_tokens();
        let outputs = self.admitted.outputs.drain(..);
        let collected = outputs.map(|parts| WholeOutput::collect(parts, &text, keeps_tokens));
        let outputs = try_join_all(collected).await?;
        let pieces = stream::iter(self.pieces(&head, outputs)).map(Ok::<_, Infallible>);
        let headers = [(CONTENT_TYPE, "application/json")];
        Ok((headers, Body::from_stream(pieces)).into_response())
    }

    /// Adds the ids of `tokens`, if they were requested.
    fn add_ids(&self, choice: &mut Value, tokens: &[OutputToken]) {
        if self.admitted.delivery.token_ids {
            choice["token_ids"] = tokens.iter().map(|token| token.id).collect();
        }
    }

    fn logprobs_of(&self, tokens: &[OutputToken], offset: usize) -> Value {
        if self.admitted.logprobs {
            self.layout
                .logprobs()
                .of(&self.admitted.text, tokens, offset)
        } else {
            Value::Null
        }
    }
}
