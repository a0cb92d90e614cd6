//! Answers piece by piece, as server-sent events.

use std::convert::Infallible;

use axum::response::sse::Event;
use futures_util::stream::{self, select_all};
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use wire::v1;

use super::{Answering, Head, Layout};
use crate::front::http::error::ApiError;
use crate::front::http::output::{Added, Output};
use crate::front::http::report;

impl<L: Layout> Answering<L> {
    /// The answer as events: pieces as they come, of several outputs in turn, the usage if it is requested, `[DONE]`.
    pub(super) fn events(
        mut self,
        head: Head,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        let parts = self.admitted.outputs.drain(..).enumerate();
        let parts = parts.map(|(index, parts)| parts.map(move |part| (index, part)).boxed());
        let parts = select_all(parts);
        let count = self.before.len();
        let pieces = Pieces {
            answering: self,
            head,
            outputs: std::iter::repeat_with(Output::default)
                .take(count)
                .collect(),
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
                // Unreachable in practice: the last output to end has ended the stream.
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
    /// Whether a piece holds log probabilities or ids of its tokens.
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
            let counts: Vec<_> = self.outputs.iter().collect();
            piece["usage"] = report::usage(&counts, delivery.choices as usize);
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
            // If log probabilities were requested, the prompt's text is sent with them.
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
        let (is_first, prompt) = (output.prompt_tokens == 0, output.prompt_chars);
        let text = &self.answering.admitted.text;
        match part.and_then(|message| output.add(message.part, text)) {
            Ok(Added::Nothing) => (Vec::new(), false),
            Ok(Added::Prompt(tokens)) => {
                let text = if is_first { before } else { "" };
                let mut choice = layout.text(text, false);
                choice["logprobs"] = self.answering.logprobs_of(&tokens, prompt);
                (vec![event(&self.piece(index, choice, None))], false)
            }
            // A token that completes no character is sent with the one that does, unless pieces hold tokens.
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
        let counts: Vec<_> = self.outputs.iter().collect();
        report::add(&mut report, &counts, delivery.choices as usize);
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
