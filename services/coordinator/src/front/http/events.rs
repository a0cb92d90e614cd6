//! Answers as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderName;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures_util::Stream;

/// How long a stream may be silent before a comment keeps its connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Tells proxies of nginx's kind to pass each piece on as it comes.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// Returns the response that sends `events` as they come.
pub(super) fn respond(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    ([UNBUFFERED], Sse::new(events).keep_alive(keep_alive)).into_response()
}
