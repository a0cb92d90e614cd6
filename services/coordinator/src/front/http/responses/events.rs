//! A response as server-sent events.

use std::convert::Infallible;

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use text::ServedText;
use tonic::Status;
use wire::v1;

use super::object::{Head, Stage, logprobs, part};
use crate::driver::AnswerStream;
use crate::front::http::error::ApiError;
use crate::front::http::events;
use crate::front::http::output::{Added, OutputToken, WholeOutput};
use crate::front::http::run::Admitted;

/// A response on its way.
struct Streaming {
    head: Head,
    /// The request, with what it holds of the process.
    admitted: Admitted,
    output: WholeOutput,
    /// Events so far.
    count: u64,
    ended: bool,
}

/// The events of the response whose one output comes in `parts`.
pub(super) fn respond(head: Head, parts: AnswerStream, admitted: Admitted) -> Response {
    let mut streaming = Streaming {
        head,
        admitted,
        output: WholeOutput::default(),
        count: 0,
        ended: false,
    };
    let opening = stream::iter(streaming.opening());
    let state = (streaming, parts);
    let rest = stream::unfold(state, |(mut streaming, mut parts)| async move {
        if streaming.ended {
            return None;
        }
        let part = parts.next().await;
        let part = part.unwrap_or_else(|| Err(Status::internal("the answer ended unfinished")));
        let events = streaming.take(part);
        Some((stream::iter(events), (streaming, parts)))
    });
    events::respond(opening.chain(rest.flatten()).map(Ok::<_, Infallible>))
}

impl Streaming {
    /// An event called `response.NAME`.
    fn event(&mut self, name: &str, mut data: Value) -> Event {
        let name = format!("response.{name}");
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.count);
        self.count += 1;
        Event::default().event(name).data(data.to_string())
    }

    /// An event about the one part of the one item.
    fn of_part(&mut self, name: &str, mut data: Value) -> Event {
        data["item_id"] = json!(self.head.item_id);
        data["output_index"] = json!(0);
        data["content_index"] = json!(0);
        self.event(name, data)
    }

    fn scores(&self, tokens: &[OutputToken]) -> Value {
        logprobs(tokens, self.of_tokens())
    }

    /// The texts of tokens, if log probabilities were requested.
    fn of_tokens(&self) -> Option<&ServedText> {
        let Admitted { logprobs, text, .. } = &self.admitted;
        logprobs.then_some(text)
    }

    fn opening(&mut self) -> Vec<Event> {
        let begun = self.head.object(Stage::InProgress, &[]);
        let item = self.head.item(Stage::InProgress, &[]);
        let empty = part("", &json!([]));
        vec![
            self.event("created", json!({ "response": begun })),
            self.event("in_progress", json!({ "response": begun })),
            self.event(
                "output_item.added",
                json!({ "output_index": 0, "item": item }),
            ),
            self.of_part("content_part.added", json!({ "part": empty })),
        ]
    }

    /// The events that a part of the answer comes to.
    fn take(&mut self, part: Result<v1::GenerateResponse, Status>) -> Vec<Event> {
        let (counts, text) = (&mut self.output.counts, &self.admitted.text);
        match part.and_then(|message| counts.add(message.part, text)) {
            Ok(Added::Piece(text, tokens)) => {
                let logprobs = self.admitted.logprobs;
                let data = json!({ "delta": text, "logprobs": self.scores(&tokens) });
                self.output.text.push_str(&text);
                self.output.keep(tokens, logprobs);
                if text.is_empty() && !logprobs {
                    return Vec::new();
                }
                vec![self.of_part("output_text.delta", data)]
            }
            Ok(Added::End) => self.closing(),
            Ok(_) => Vec::new(),
            Err(status) => {
                self.ended = true;
                let error = &ApiError::from(status).body()["error"];
                let mut failed = self.head.object(Stage::Failed, &[]);
                failed["error"] = json!({ "code": "server_error", "message": error["message"] });
                vec![self.event("failed", json!({ "response": failed }))]
            }
        }
    }

    fn closing(&mut self) -> Vec<Event> {
        self.ended = true;
        let stage = Stage::of(&self.output.counts);
        let text = self.output.text.clone();
        let scores = self.scores(&self.output.tokens);
        let whole = part(&text, &scores);
        let item = self.head.item(stage, std::slice::from_ref(&whole));
        let response = self.head.whole(&self.output, self.of_tokens());
        vec![
            self.of_part(
                "output_text.done",
                json!({ "text": text, "logprobs": scores }),
            ),
            self.of_part("content_part.done", json!({ "part": whole })),
            self.event(
                "output_item.done",
                json!({ "output_index": 0, "item": item }),
            ),
            self.event(stage.name(), json!({ "response": response })),
        ]
    }
}
