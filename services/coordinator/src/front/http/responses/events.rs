//! A response as server-sent events.

use axum::response::Response;
use axum::response::sse::Event;
use serde_json::{Value, json};
use wire::v1;

use super::object::{ResponseObject, ResponseStatus, part, status_of};
use crate::driver::ResponseStream;
use crate::front::http::answer::respond_events;
use crate::front::http::error::ApiError;
use crate::front::http::output::{OutputDelta, OutputItem, Said, WholeOutput};

/// The state of what is under way.
const IN_PROGRESS: ResponseStatus = "in_progress";

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

    /// Returns an event about the item that came last.
    fn of_item(&mut self, name: &str, mut data: Value) -> Event {
        data["output_index"] = json!(self.index());
        self.event(name, data)
    }

    /// Returns an event about something in the item that came last.
    fn within_item(&mut self, name: &str, mut data: Value) -> Event {
        let index = self.index();
        let id = self
            .output
            .items
            .get(index)
            .map(|item| self.response.item_id(index, item));
        data["item_id"] = json!(id);
        self.of_item(name, data)
    }

    /// Returns an event about the one part of the item that came last.
    fn of_part(&mut self, name: &str, mut data: Value) -> Event {
        data["content_index"] = json!(0);
        self.within_item(name, data)
    }

    /// Returns the place of the item that came last.
    fn index(&self) -> usize {
        self.output.items.len().saturating_sub(1)
    }

    fn opening(&mut self) -> Vec<Event> {
        let begun = json!({ "response": self.response.object(IN_PROGRESS, &[]) });
        vec![
            self.event("created", begun.clone()),
            self.event("in_progress", begun),
        ]
    }

    /// Returns the events that a part of the answer comes to, and whether they are the last.
    fn take(&mut self, message: v1::GenerateResponse) -> (Vec<Event>, bool) {
        let (progress, text) = (&mut self.output.progress, &self.response.request.text);
        match progress.add(message.part, text) {
            Ok(OutputDelta::Piece(mut said, tokens)) => {
                let logprobs = self.response.request.logprobs;
                if said.is_empty() && logprobs {
                    said.push(Said::Text(String::new()));
                }
                let mut scores = Some(self.response.logprobs(&tokens));
                self.output.keep(tokens, logprobs);
                let events = said
                    .into_iter()
                    .flat_map(|said| self.say(said, &mut scores));
                (events.collect(), false)
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

    /// Returns the events of a piece: of the end of an item and the beginning of the next, if it is of another, and of what it
    /// adds.
    fn say(&mut self, said: Said, scores: &mut Option<Value>) -> Vec<Event> {
        let mut events = Vec::new();
        let is_of_last = self.output.goes_on_with(&said);
        if !is_of_last {
            events.extend(self.end_item("completed"));
        }
        self.output.say(vec![said.clone()]);
        if !is_of_last {
            events.extend(self.begin_item(&said));
        }
        events.extend(match said {
            Said::Text(text) => {
                let scores = scores.take().unwrap_or(json!([]));
                let data = json!({ "delta": text, "logprobs": scores });
                Some(self.of_part("output_text.delta", data))
            }
            Said::Reasoning(text) => {
                Some(self.of_part("reasoning_text.delta", json!({ "delta": text })))
            }
            Said::Call(..) => None,
            Said::Arguments(_, json) => {
                let data = json!({ "delta": json });
                Some(self.within_item("function_call_arguments.delta", data))
            }
        });
        events
    }

    /// Returns the events that begin the item of `said`.
    fn begin_item(&mut self, said: &Said) -> Vec<Event> {
        let empty = match said {
            Said::Reasoning(_) => OutputItem::Reasoning(String::new()),
            Said::Call(_, call) => OutputItem::Call(call.clone()),
            Said::Text(_) | Said::Arguments(..) => OutputItem::Text(String::new()),
        };
        let part = part(&empty, &json!([]));
        let mut item = self
            .response
            .item(self.index(), IN_PROGRESS, &empty, &json!([]));
        if !part.is_null() {
            item["content"] = json!([]);
        }
        let mut events = vec![self.of_item("output_item.added", json!({ "item": item }))];
        if !part.is_null() {
            events.push(self.of_part("content_part.added", json!({ "part": part })));
        }
        events
    }

    /// Returns the events that end the item that came last, if there is one.
    fn end_item(&mut self, status: ResponseStatus) -> Vec<Event> {
        let Some(item) = self.output.items.last().cloned() else {
            return Vec::new();
        };
        let is_first_text = self
            .output
            .items
            .iter()
            .position(|it| matches!(it, OutputItem::Text(_)));
        let scores = if is_first_text == Some(self.index()) {
            self.response.logprobs(&self.output.tokens)
        } else {
            json!([])
        };
        let part = part(&item, &scores);
        let whole = self.response.item(self.index(), status, &item, &scores);
        let mut events = match item {
            OutputItem::Text(text) => {
                let data = json!({ "text": text, "logprobs": scores });
                vec![self.of_part("output_text.done", data)]
            }
            OutputItem::Reasoning(text) => {
                vec![self.of_part("reasoning_text.done", json!({ "text": text }))]
            }
            OutputItem::Call(call) => {
                let data = json!({ "name": call.name, "arguments": call.arguments });
                vec![self.within_item("function_call_arguments.done", data)]
            }
        };
        if !part.is_null() {
            events.push(self.of_part("content_part.done", json!({ "part": part })));
        }
        events.push(self.of_item("output_item.done", json!({ "item": whole })));
        events
    }

    fn closing(&mut self) -> Vec<Event> {
        let status = status_of(&self.output.progress);
        let mut events = Vec::new();
        if self.output.items.is_empty() {
            let nothing = Said::Text(String::new());
            self.output.say(vec![nothing.clone()]);
            events.extend(self.begin_item(&nothing));
        }
        events.extend(self.end_item(status));
        let response = self.response.whole(&self.output);
        events.push(self.event(status, json!({ "response": response })));
        events
    }
}
