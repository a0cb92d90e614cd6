//! Why a request was not answered.

use std::time::Duration;

use serde_json::Value;

use super::events::EventFault;

/// Most characters of a server's own words that are repeated.
const LONGEST_WORDS: usize = 300;

/// What went wrong with a request. The words of its start say what kind it is, by which failures are counted.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestFailure {
    /// No connection, or one that broke before an answer.
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    /// Another status than 200, and what the server says about it.
    #[error("{url} answered with status {status}: {words}{}", advice(*status))]
    Status {
        url: String,
        status: u16,
        words: String,
    },
    /// No whole answer in time.
    #[error("{url} gave no whole answer within {limit:?}; --timeout allows more")]
    Late { url: String, limit: Duration },
    /// The stream broke off.
    #[error("{url}: the stream broke off: {why}")]
    Broken { url: String, why: String },
    /// The stream came to its end, but the answer did not.
    #[error("{url}: the stream ended before [DONE] and without a finish reason")]
    Unfinished { url: String },
    /// What came is no answer of the OpenAI API.
    #[error("{url}: {why}")]
    Malformed { url: String, why: String },
    /// An error within the stream.
    #[error("{url} reported an error in its stream: {words}")]
    Reported { url: String, words: String },
}

/// Returns what to do about a status.
fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "; --api-key-file names a file with the server's key",
        404 => "; --url ends with /v1 for most servers, and --model names one that is served",
        429 => "; lower --rate or --concurrency, or raise the server's limit",
        _ => "",
    }
}

impl RequestFailure {
    /// Returns the refusal of `url` with `status`, whose body is `body`.
    pub(super) fn refused(url: &str, status: u16, body: &[u8]) -> Self {
        let words = match serde_json::from_slice::<Value>(body) {
            Ok(answer) => words_of(&answer),
            Err(_) => shortened(&String::from_utf8_lossy(body)),
        };
        Self::Status {
            url: url.to_owned(),
            status,
            words,
        }
    }

    /// Returns the error that an event is, if it is one.
    pub(super) fn reported(url: &str, event: &Value) -> Option<Self> {
        event.get("error").filter(|error| !error.is_null())?;
        Some(Self::Reported {
            url: url.to_owned(),
            words: words_of(event),
        })
    }

    /// Returns the fault of a stream of events.
    pub(super) fn no_events(url: &str, fault: &EventFault) -> Self {
        Self::Malformed {
            url: url.to_owned(),
            why: fault.to_string(),
        }
    }

    /// Returns what kind of failure it is, in a few words.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Unreachable { .. } => "no connection".to_owned(),
            Self::Status { status, .. } => format!("status {status}"),
            Self::Late { .. } => "timeout".to_owned(),
            Self::Broken { .. } => "stream broke off".to_owned(),
            Self::Unfinished { .. } => "stream ended early".to_owned(),
            Self::Malformed { .. } => "malformed answer".to_owned(),
            Self::Reported { .. } => "error in the stream".to_owned(),
        }
    }
}

/// Returns the message of an error object, in OpenAI's form or another.
fn words_of(answer: &Value) -> String {
    let places = ["/error/message", "/message", "/detail", "/error"];
    let said = places.iter().find_map(|place| answer.pointer(place));
    match said {
        Some(Value::String(words)) => shortened(words),
        Some(other) => shortened(&other.to_string()),
        None => shortened(&answer.to_string()),
    }
}

/// Returns `words` in one line that is not too long.
fn shortened(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "no words".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_repeats_the_servers_words_and_says_what_to_do() {
        let url = "http://a/v1/completions";
        for (status, body, expected) in [
            (
                404,
                &br#"{"error": {"message": "no model x", "type": "e"}}"#[..],
                "answered with status 404: no model x; --url ends with /v1",
            ),
            (400, br#"{"detail": "bad field"}"#, "status 400: bad field"),
            (503, b"", "status 503: no words"),
            (500, b"<p>\n  Oh", "status 500: <p> Oh"),
        ] {
            let failure = RequestFailure::refused(url, status, body);
            let said = failure.to_string();
            assert!(said.starts_with(url) && said.contains(expected), "{said}");
            assert_eq!(failure.reason(), format!("status {status}"));
        }
        let long = "é".repeat(2 * LONGEST_WORDS);
        let said = RequestFailure::refused(url, 500, long.as_bytes()).to_string();
        assert_eq!(said.matches('é').count(), LONGEST_WORDS);
    }

    #[test]
    fn an_event_with_an_error_is_a_failure_and_one_without_is_none() {
        let reported = RequestFailure::reported("u", &json!({ "error": { "message": "gone" } }));
        let said = reported.expect("an error").to_string();
        assert_eq!(said, "u reported an error in its stream: gone");
        for event in [json!({ "error": null }), json!({ "choices": [] })] {
            assert!(RequestFailure::reported("u", &event).is_none());
        }
    }
}
