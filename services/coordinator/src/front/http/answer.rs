//! Answers to requests for text: whole, or piece by piece as server-sent events.

mod events;
mod piece;
mod whole;

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures_util::future::try_join_all;
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use wire::status::BadField;

use super::error::ApiError;
use super::guard::RequestId;
use super::logprobs::LogprobsForm;
use super::output::{OutputToken, Said, WholeOutput};
use super::state::{ParsedRequest, RunningRequest, TextCall};

/// How long a stream may be silent before a comment keeps its connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Tells proxies of nginx's kind to pass each piece on as it comes.
pub(super) const UNBUFFERED: (HeaderName, &str) =
    (HeaderName::from_static("x-accel-buffering"), "no");

/// How an answer is laid out: as a completion, or as a turn of a chat.
#[derive(Debug)]
pub(super) struct AnswerLayout {
    /// The prefix of an answer's identifier.
    pub(super) prefix: &'static str,
    /// The value of `object` in a whole answer, and in a piece of one.
    pub(super) whole_object: &'static str,
    pub(super) piece_object: &'static str,
    /// Returns the first piece of an output, before any text.
    pub(super) opening: Option<fn() -> Value>,
    /// Returns a choice of a whole answer, an output behind the text that stands before it.
    pub(super) whole: fn(&str, &WholeOutput) -> Value,
    /// Returns a piece of an output.
    pub(super) piece: fn(&Said) -> Value,
    /// Returns the end of an output, which adds no text.
    pub(super) closing: fn() -> Value,
    pub(super) logprobs: LogprobsForm,
}

/// An answer that consists of choices, one for each output of a request.
struct ChoicesAnswer {
    layout: &'static AnswerLayout,
    request: RunningRequest,
}

/// Answers a request that `read` reads, as `layout` says.
///
/// # Errors
/// What the request is refused with; of a whole answer, also what one of its outputs failed with.
pub(super) async fn create(
    (State(state), caller, headers, body): TextCall,
    read: fn(&[u8]) -> Result<ParsedRequest, BadField>,
    layout: &'static AnswerLayout,
) -> Result<Response, ApiError> {
    let (request, reading) = state.read(body, read).await?;
    let mut request = state.start(request, &caller, &headers, reading).await?;
    let id = Extension(RequestId(request.id.clone()));
    let outputs = std::mem::take(&mut request.outputs);
    let answer = ChoicesAnswer { layout, request };
    if answer.request.delivery.stream {
        return Ok((id, answer.events(outputs)).into_response());
    }
    let text = &answer.request.text;
    let keeps_tokens = answer.tells_tokens();
    let collected = outputs
        .into_iter()
        .map(|parts| WholeOutput::collect(parts, text, keeps_tokens));
    let outputs = try_join_all(collected).await?;
    let pieces = stream::iter(answer.whole(outputs)).map(Ok::<_, Infallible>);
    let headers = [(CONTENT_TYPE, "application/json")];
    Ok((id, headers, Body::from_stream(pieces)).into_response())
}

impl ChoicesAnswer {
    /// Returns the fields that all pieces of the answer have in common, and `choices`.
    fn object(&self, object: &str, choices: &[Value]) -> Value {
        let RunningRequest {
            id, created, model, ..
        } = &self.request;
        json!({
            "id": format!("{}{id}", self.layout.prefix),
            "object": object,
            "created": created,
            "model": model,
            "choices": choices,
        })
    }

    /// Returns whether the answer says more of tokens than their text.
    fn tells_tokens(&self) -> bool {
        let delivery = self.request.delivery;
        self.request.logprobs || delivery.token_ids || delivery.report_rounds
    }

    /// Returns the ids of `tokens`, if they were requested.
    fn token_ids(&self, tokens: &[OutputToken]) -> Option<Vec<u32>> {
        let ids = || tokens.iter().map(|token| token.id).collect();
        self.request.delivery.token_ids.then(ids)
    }

    /// Returns the log probabilities of `tokens`, before which stand `offset` characters; null if they were not requested.
    fn logprobs_of(&self, tokens: &[OutputToken], offset: usize) -> Value {
        if self.request.logprobs {
            let form = &self.layout.logprobs;
            form.of(&self.request.text, tokens, offset)
        } else {
            Value::Null
        }
    }
}

/// Returns what `take` makes of each of `parts`, until it says that they are the last.
pub(super) fn taken<State: Send + 'static, Part: Send + 'static, Sent: Send + 'static>(
    state: State,
    parts: impl Stream<Item = Part> + Send + Unpin + 'static,
    take: fn(&mut State, Part) -> (Vec<Sent>, bool),
) -> impl Stream<Item = Sent> + Send + 'static {
    let state = (state, parts, false);
    let sent = stream::unfold(state, move |(mut state, mut parts, ended)| async move {
        if ended {
            return None;
        }
        let (sent, ended) = take(&mut state, parts.next().await?);
        Some((stream::iter(sent), (state, parts, ended)))
    });
    sent.flatten()
}

/// Returns the response that sends `opening`, and then the events that `take` makes of each of `parts`, until it says that
/// they are the last.
pub(super) fn respond_events<State: Send + 'static, Part: Send + 'static>(
    opening: Vec<Event>,
    state: State,
    parts: impl Stream<Item = Part> + Send + Unpin + 'static,
    take: fn(&mut State, Part) -> (Vec<Event>, bool),
) -> Response {
    let events = stream::iter(opening).chain(taken(state, parts, take));
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive);
    ([UNBUFFERED], events).into_response()
}
