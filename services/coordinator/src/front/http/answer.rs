//! Answers to requests for text: whole, or piece by piece as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures_util::future::try_join_all;
use futures_util::stream::{self, select_all};
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use text::ServedText;
use wire::v1;
use wire::v1::generate_request::Prompt;

use super::error::ApiError;
use super::guard::RequestId;
use super::output::{Added, Output, OutputToken};
use super::report;
use super::run::{Admitted, unix_time};

/// How long a stream may be silent before a comment keeps its connection alive.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(10);

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
    /// Log probabilities of tokens, before which there are `offset` characters.
    fn logprobs(self, text: &ServedText, tokens: &[OutputToken], offset: usize) -> Value;
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
            Prompt::TokenIds(tokens) => admitted.text.text_of(&tokens.ids),
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
            let events = self.events(head);
            let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
            return Ok(Sse::new(events).keep_alive(keep_alive).into_response());
        }
        let text = Arc::clone(&self.admitted.text);
        let outputs = self.admitted.outputs.drain(..);
        let outputs = try_join_all(outputs.map(|parts| Output::collect(parts, &text))).await?;
        let choices = outputs.iter().zip(&self.before).enumerate();
        let choices = choices.map(|(index, (output, before))| {
            let text = format!("{before}{}", output.text);
            let mut choice = self.layout.text(&text, true);
            choice["index"] = json!(index);
            choice["logprobs"] = self.whole_logprobs(output, before);
            self.add_ids(&mut choice, &output.tokens);
            choice["finish_reason"] = json!(output.finish_reason());
            choice
        });
        let mut answer = head.object(L::OBJECTS.0, &choices.collect::<Vec<_>>());
        let choices = self.admitted.delivery.choices as usize;
        report::add(&mut answer, &outputs, choices);
        Ok(Json(answer).into_response())
    }

    /// The log probabilities of a whole output, after those of its prompt if they were requested.
    fn whole_logprobs(&self, output: &Output, before: &str) -> Value {
        if output.prompt.is_empty() {
            return self.logprobs_of(&output.tokens, before.chars().count());
        }
        let tokens = [&output.prompt[..], &output.tokens].concat();
        self.logprobs_of(&tokens, 0)
    }

    /// Adds the ids of `tokens`, if they were requested.
    fn add_ids(&self, choice: &mut Value, tokens: &[OutputToken]) {
        if self.admitted.delivery.token_ids {
            choice["token_ids"] = tokens.iter().map(|token| token.id).collect();
        }
    }

    fn logprobs_of(&self, tokens: &[OutputToken], offset: usize) -> Value {
        if self.admitted.logprobs {
            self.layout.logprobs(&self.admitted.text, tokens, offset)
        } else {
            Value::Null
        }
    }

    /// The answer as events: pieces as they come, of several outputs in turn, the usage if it is requested, `[DONE]`.
    fn events(mut self, head: Head) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        let parts = self.admitted.outputs.drain(..).enumerate();
        let parts = parts.map(|(index, parts)| parts.map(move |part| (index, part)).boxed());
        let parts = select_all(parts);
        let count = self.before.len();
        let pieces = Pieces {
            answering: self,
            head,
            outputs: (0..count).map(|_| Output::default()).collect(),
            left: count,
        };
        let opening = stream::iter(pieces.opening());
        let state = (pieces, parts, false);
        let rest = stream::unfold(state, |(mut pieces, mut parts, ended)| async move {
            if ended {
                return None;
            }
            let (events, ended) = match parts.next().await {
                Some((index, part)) => pieces.take(index, part),
                // Each output ends with a part that says so.
                None => (vec![done()], true),
            };
            Some((stream::iter(events), (pieces, parts, ended)))
        });
        opening.chain(rest.flatten()).map(Ok)
    }
}

/// The pieces of a streamed answer.
struct Pieces<L> {
    answering: Answering<L>,
    head: Head,
    outputs: Vec<Output>,
    /// Outputs that have not ended.
    left: usize,
}

fn event(data: &Value) -> Event {
    Event::default().data(data.to_string())
}

fn done() -> Event {
    Event::default().data("[DONE]")
}

impl<L: Layout> Pieces<L> {
    /// Whether something is said of each token.
    fn tells_tokens(&self) -> bool {
        let admitted = &self.answering.admitted;
        admitted.logprobs || admitted.delivery.token_ids
    }

    /// A piece of output `index`.
    fn piece(&self, index: usize, mut choice: Value, finish_reason: Option<&str>) -> Value {
        choice["index"] = json!(index);
        choice["finish_reason"] = json!(finish_reason);
        if choice.get("logprobs").is_none() {
            choice["logprobs"] = Value::Null;
        }
        let mut piece = self.head.object(L::OBJECTS.1, &[choice]);
        let delivery = self.answering.admitted.delivery;
        if delivery.continuous_usage {
            piece["usage"] = report::usage(&self.outputs, delivery.choices as usize);
        } else if delivery.include_usage {
            piece["usage"] = Value::Null;
        }
        piece
    }

    /// The events before any generated text: roles, and prompts that are echoed.
    fn opening(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (index, before) in self.answering.before.iter().enumerate() {
            let layout = self.answering.layout;
            // With log probabilities it comes when they do.
            let comes_later = before.is_empty() || self.answering.admitted.logprobs;
            let echoed = (!comes_later).then(|| layout.text(before, false));
            for choice in layout.opening().into_iter().chain(echoed) {
                events.push(event(&self.piece(index, choice, None)));
            }
        }
        events
    }

    /// The events that a part of output `index` comes to, and whether they are the last.
    fn take(
        &mut self,
        index: usize,
        part: Result<v1::GenerateResponse, tonic::Status>,
    ) -> (Vec<Event>, bool) {
        let layout = self.answering.layout;
        let before = &self.answering.before[index];
        let output = &mut self.outputs[index];
        let offset = before.chars().count() + output.chars;
        let prompt = output
            .prompt
            .iter()
            .map(|token| token.piece.chars().count());
        let prompt: usize = prompt.sum();
        let text = &self.answering.admitted.text;
        match part.and_then(|message| output.add(message.part, text)) {
            Ok(Added::Nothing) => (Vec::new(), false),
            Ok(Added::Prompt(tokens)) => {
                let text = if prompt == 0 { before } else { "" };
                let mut choice = layout.text(text, false);
                choice["logprobs"] = self.answering.logprobs_of(&tokens, prompt);
                (vec![event(&self.piece(index, choice, None))], false)
            }
            // Tokens without text come with the text that they are a part of, unless something is said of each.
            Ok(Added::Piece(text, _)) if text.is_empty() && !self.tells_tokens() => {
                (Vec::new(), false)
            }
            Ok(Added::Piece(text, tokens)) => {
                let mut choice = layout.text(&text, false);
                choice["logprobs"] = self.answering.logprobs_of(&tokens, offset);
                self.answering.add_ids(&mut choice, &tokens);
                (vec![event(&self.piece(index, choice, None))], false)
            }
            Ok(Added::End) => {
                self.left -= 1;
                let reason = self.outputs[index].finish_reason();
                let last = self.piece(index, layout.closing(), Some(reason));
                self.end(last)
            }
            Err(status) => {
                let error = ApiError::from(status).body();
                (vec![event(&error), done()], true)
            }
        }
    }

    /// The end of an output, and if it is the last one, of the answer.
    fn end(&self, mut last: Value) -> (Vec<Event>, bool) {
        if self.left > 0 {
            return (vec![event(&last)], false);
        }
        let delivery = self.answering.admitted.delivery;
        let mut report = json!({});
        report::add(&mut report, &self.outputs, delivery.choices as usize);
        let mut events = Vec::new();
        if delivery.include_usage {
            let mut usage = self.head.object(L::OBJECTS.1, &[]);
            merge(&mut usage, &report);
            merge(&mut last, &json!({ "speculation": report["speculation"] }));
            events.extend([event(&last), event(&usage)]);
        } else {
            // Clients that did not ask for the usage expect none.
            if let Some(report) = report.as_object_mut() {
                report.remove("usage");
            }
            merge(&mut last, &report);
            events.push(event(&last));
        }
        events.push(done());
        (events, true)
    }
}

/// Adds the fields of `from` to those of `to`.
fn merge(to: &mut Value, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        to[name] = value.clone();
    }
}
