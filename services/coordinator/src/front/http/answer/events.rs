//! Answers in choices piece by piece, as server-sent events.

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::StreamExt;
use futures_util::stream::select_all;
use serde::Serialize;
use serde_json::{Value, json};
use wire::v1;
use wire::v1::generate_response::Part;

use super::piece::{AnswerPiece, PieceChoice, ToldToken};
use super::{ChoicesAnswer, respond_events};
use crate::driver::ResponseStream;
use crate::front::http::error::ApiError;
use crate::front::http::output::{OutputDelta, OutputProgress, Said};
use crate::front::http::report;

/// A streamed answer under way.
struct AnswerEvents {
    answer: ChoicesAnswer,
    outputs: Vec<OutputProgress>,
    /// Outputs that have not ended.
    left: usize,
}

impl ChoicesAnswer {
    /// Returns the answer as events: pieces of `outputs` as they come, of several in turn, the usage if it is requested,
    /// `[DONE]`.
    pub(super) fn events(self, outputs: Vec<ResponseStream>) -> Response {
        let count = outputs.len();
        let parts = outputs.into_iter().enumerate();
        // A round's report is ready as soon as its tokens are, and goes with them.
        let parts = parts.map(|(index, parts)| {
            parts
                .ready_chunks(2)
                .map(move |parts| (index, parts))
                .boxed()
        });
        let events = AnswerEvents {
            answer: self,
            outputs: (0..count).map(|_| OutputProgress::default()).collect(),
            left: count,
        };
        respond_events(
            events.opening(),
            events,
            select_all(parts),
            AnswerEvents::take,
        )
    }
}

/// An event of `data`, an object whose keys are texts: nothing of it cannot be written.
fn event(data: &impl Serialize) -> Event {
    let json = serde_json::to_string(data);
    Event::default().data(json.unwrap_or_default())
}

fn done() -> Event {
    Event::default().data("[DONE]")
}

impl AnswerEvents {
    /// Returns the piece that tells `choice`.
    fn piece(&self, choice: PieceChoice) -> AnswerPiece<'_> {
        let ChoicesAnswer { layout, request } = &self.answer;
        let delivery = request.delivery;
        let usage = || {
            let outputs: Vec<_> = self.outputs.iter().collect();
            report::usage(&outputs, delivery.choices as usize)
        };
        AnswerPiece {
            id: format!("{}{}", layout.prefix, request.id),
            object: layout.piece_object,
            created: request.created,
            model: &request.model,
            choices: [choice],
            usage: if delivery.continuous_usage {
                Some(usage())
            } else {
                delivery.include_usage.then_some(Value::Null)
            },
        }
    }

    /// Returns the events before any generated text: roles, and prompts that are echoed.
    fn opening(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let ChoicesAnswer { layout, request } = &self.answer;
        for (index, before) in request.before.iter().enumerate() {
            // If log probabilities were requested, the prompt's text is sent with them.
            let comes_later = before.is_empty() || request.logprobs;
            let echoed = (!comes_later).then(|| (layout.piece)(&Said::Text(before.clone())));
            let opening = layout.opening.map(|opening| opening());
            for choice in opening.into_iter().chain(echoed) {
                events.push(event(&self.piece(PieceChoice::new(index, choice))));
            }
        }
        events
    }

    /// Returns the events that parts of output `index` come to, and whether they are the last.
    fn take(&mut self, (index, parts): (usize, Vec<v1::GenerateResponse>)) -> (Vec<Event>, bool) {
        let (mut events, mut choices) = (Vec::new(), Vec::new());
        for message in parts {
            if !matches!(message.part, Some(Part::Round(_))) {
                self.tell(&mut choices, &mut events);
            }
            if let Some((last, ended)) = self.add(index, message, &mut choices) {
                self.tell(&mut choices, &mut events);
                events.extend(last);
                return (events, ended);
            }
        }
        self.tell(&mut choices, &mut events);
        (events, false)
    }

    /// Makes events of `choices`.
    fn tell(&self, choices: &mut Vec<PieceChoice>, events: &mut Vec<Event>) {
        let pieces = choices.drain(..);
        events.extend(pieces.map(|choice| event(&self.piece(choice))));
    }

    /// Adds a part of output `index` to `choices`; returns the events that end the output with it, if it does, and whether
    /// they end the answer.
    fn add(
        &mut self,
        index: usize,
        message: v1::GenerateResponse,
        choices: &mut Vec<PieceChoice>,
    ) -> Option<(Vec<Event>, bool)> {
        let ChoicesAnswer { layout, request } = &self.answer;
        let before = &request.before[index];
        let output = &mut self.outputs[index];
        let offset = before.chars().count() + output.chars;
        let (is_first, prompt) = (output.prompt_tokens == 0, output.prompt_chars);
        let piece = |said: &Said| PieceChoice::new(index, (layout.piece)(said));
        let of_text = |text: &str| piece(&Said::Text(text.to_owned()));
        match output.add(message.part, &request.text) {
            Ok(OutputDelta::Nothing) => {}
            Ok(OutputDelta::Prompt(tokens)) => {
                let text = if is_first { before } else { "" };
                let mut choice = of_text(text);
                choice.logprobs = self.answer.logprobs_of(&tokens, prompt);
                choices.push(choice);
            }
            // A token that completes no character is sent with the one that does, unless pieces hold tokens.
            Ok(OutputDelta::Piece(said, tokens)) => {
                let first = choices.len();
                choices.extend(said.iter().map(piece));
                if self.answer.tells_tokens() {
                    if choices.len() == first {
                        choices.push(of_text(""));
                    }
                    let choice = &mut choices[first];
                    choice.logprobs = self.answer.logprobs_of(&tokens, offset);
                    choice.token_ids = self.answer.token_ids(&tokens);
                    if request.delivery.report_rounds {
                        choice.tokens = Some(tokens.iter().map(ToldToken::new).collect());
                    }
                }
            }
            Ok(OutputDelta::Round(report)) => {
                if choices.is_empty() {
                    choices.push(of_text(""));
                }
                if let Some(last) = choices.last_mut() {
                    last.round = Some(report);
                }
            }
            Ok(OutputDelta::End) => {
                let reason = output.finish_reason();
                self.left -= 1;
                let mut last = PieceChoice::new(index, (layout.closing)());
                last.finish_reason = Some(reason);
                return Some(self.end(json!(self.piece(last))));
            }
            Err(status) => {
                let error = ApiError::from(status).body();
                return Some((vec![event(&error), done()], true));
            }
        }
        None
    }

    /// Returns the end of an output, and if it is the last one, of the answer.
    fn end(&self, mut last: Value) -> (Vec<Event>, bool) {
        if self.left > 0 {
            return (vec![event(&last)], false);
        }
        let delivery = self.answer.request.delivery;
        let outputs: Vec<_> = self.outputs.iter().collect();
        let mut events = Vec::new();
        let add = |piece: &mut Value| {
            let choices = delivery.choices as usize;
            report::add(piece, &outputs, choices, delivery.include_usage);
            report::warn(piece, &self.answer.request.warnings, &outputs);
        };
        if delivery.include_usage {
            let mut usage = (self.answer).object(self.answer.layout.piece_object, &[]);
            add(&mut usage);
            last["speculation"] = usage["speculation"].clone();
            events.extend([event(&last), event(&usage)]);
        } else {
            // Clients that did not ask for the usage expect none.
            add(&mut last);
            events.push(event(&last));
        }
        events.push(done());
        (events, true)
    }
}
