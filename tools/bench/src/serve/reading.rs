//! An answer, read event by event.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::answer::Answer;
use super::events::EventDecoder;
use super::failure::RequestFailure;

/// Most bytes of an answer.
const LONGEST_STREAM: usize = 256 << 20;

/// Event that ends a stream.
const DONE: &str = "[DONE]";

/// Reads the events of `body`, which came of a request `sent` then.
///
/// # Errors
/// If they are no whole answer, or say that something failed.
pub(super) async fn read(
    url: &str,
    mut body: Incoming,
    sent: Instant,
) -> Result<Answer, RequestFailure> {
    let malformed = |why: String| RequestFailure::Malformed {
        url: url.to_owned(),
        why,
    };
    let mut answer = Answer::default();
    let mut decoder = EventDecoder::new();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| RequestFailure::Broken {
            url: url.to_owned(),
            why: error.to_string(),
        })?;
        let at = sent.elapsed();
        let data = frame.into_data().unwrap_or_default();
        bytes += data.len();
        if bytes > LONGEST_STREAM {
            let why =
                format!("more than {LONGEST_STREAM} bytes, the most that is read of an answer");
            return Err(malformed(why));
        }
        let events = decoder.push(&data);
        for event in events.map_err(|fault| RequestFailure::no_events(url, &fault))? {
            if take(&mut answer, url, &event, at)? {
                answer.end = at;
                return Ok(answer);
            }
        }
    }
    answer.end = sent.elapsed();
    let last = decoder.finish();
    let last = last.map_err(|fault| RequestFailure::no_events(url, &fault))?;
    let end = answer.end;
    let is_done = match last {
        Some(event) => take(&mut answer, url, &event, end)?,
        None => false,
    };
    if is_done || answer.is_finished {
        return Ok(answer);
    }
    Err(RequestFailure::Unfinished {
        url: url.to_owned(),
    })
}

/// Reads an event into `answer`; true if it ends the stream.
fn take(answer: &mut Answer, url: &str, event: &str, at: Duration) -> Result<bool, RequestFailure> {
    if event == DONE {
        return Ok(true);
    }
    let event: Value = serde_json::from_str(event).map_err(|error| RequestFailure::Malformed {
        url: url.to_owned(),
        why: format!("an event is no JSON: {error}"),
    })?;
    if let Some(failure) = RequestFailure::reported(url, &event) {
        return Err(failure);
    }
    answer.read(&event, at);
    Ok(false)
}
