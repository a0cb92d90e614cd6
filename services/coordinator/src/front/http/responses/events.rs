//! A response as server-sent events.

use axum::response::Response;
use axum::response::sse::Event;
use serde_json::{Value, json};
use wire::v1;

use super::object::{ResponseObject, part, status_of};
use crate::driver::ResponseStream;
use crate::front::http::answer::respond_events;
use crate::front::http::error::ApiError;
use crate::front::http::output::{OutputDelta, WholeOutput};

/// A streamed response under way.
struct ResponseEvents {
    response: ResponseObject,
    output: WholeOutput,
    /// Events so far.
    count: u64,
}

/// Returns `response` as events; its one output comes in `parts`.
pub(super) fn respond(response: ResponseObject, parts: ResponseStream) -> Response {
    let mut events = ResponseEvents {
        response,
        output: WholeOutput::default(),
        count: 0,
    };
    respond_events(events.opening(), events, parts, ResponseEvents::take)
}

impl ResponseEvents {
    /// Returns an event called `response.NAME`.
    fn event(&mut self, name: &str, mut data: Value) -> Event {
        let name = format!("response.{name}");
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.count);
        self.count += 1;
        Event::default().event(name).data(data.to_string())
    }

    /// Returns an event about the one part of the one item.
    fn of_part(&mut self, name: &str, mut data: Value) -> Event {
        data["item_id"] = json!(self.response.item_id());
        data["output_index"] = json!(0);
        data["content_index"] = json!(0);
        self.event(name, data)
    }

    fn opening(&mut self) -> Vec<Event> {
        let status = "in_progress";
        let begun = json!({ "response": self.response.object(status, &[]) });
        let item = json!({ "output_index": 0, "item": self.response.item(status, &[]) });
        let empty = part("", &json!([]));
        vec![
            self.event("created", begun.clone()),
            self.event("in_progress", begun),
            self.event("output_item.added", item),
            self.of_part("content_part.added", json!({ "part": empty })),
        ]
    }

    /// Returns the events that a part of the answer comes to, and whether they are the last.
    fn take(&mut self, message: v1::GenerateResponse) -> (Vec<Event>, bool) {
        let (progress, text) = (&mut self.output.progress, &self.response.request.text);
        match progress.add(message.part, text) {
            Ok(OutputDelta::Piece(text, tokens)) => {
                let logprobs = self.response.request.logprobs;
                let data = json!({ "delta": text, "logprobs": self.response.logprobs(&tokens) });
                self.output.text.push_str(&text);
                self.output.keep(tokens, logprobs);
                if text.is_empty() && !logprobs {
                    return (Vec::new(), false);
                }
                (vec![self.of_part("output_text.delta", data)], false)
            }
            Ok(OutputDelta::End) => (self.closing(), true),
            Ok(_) => (Vec::new(), false),
            Err(status) => {
                let error = &ApiError::from(status).body()["error"];
                let mut failed = self.response.object("failed", &[]);
                failed["error"] = json!({ "code": "server_error", "message": error["message"] });
                let failed = self.event("failed", json!({ "response": failed }));
                (vec![failed], true)
            }
        }
    }

    fn closing(&mut self) -> Vec<Event> {
        let status = status_of(&self.output.progress);
        let text = self.output.text.clone();
        let scores = self.response.logprobs(&self.output.tokens);
        let whole = part(&text, &scores);
        let item = self.response.item(status, std::slice::from_ref(&whole));
        let response = self.response.whole(&self.output);
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
            self.event(status, json!({ "response": response })),
        ]
    }
}
