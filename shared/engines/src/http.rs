//! The connection to an engine.
//!
//! Where it is comes from the operator's configuration alone: no redirect is followed, and no proxy of the environment
//! is used. Answers are bounded in bytes and in time.

use std::io::Read;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{HeaderMap, header};
use ureq::{Agent, Body, RequestBuilder};

use crate::error::EngineError;
use crate::settings::{Authorization, ConnectionSettings};

/// A connection to one engine, with those that wait to be used again.
#[derive(Debug)]
pub struct Connection {
    agent: Agent,
    url: String,
    authorization: Option<Authorization>,
}

/// One request, and what is known of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) path: &'static str,
    /// Most bytes of an answer.
    pub(crate) longest: u64,
    pub(crate) deadline: Instant,
    /// Words by which the engine says in a refusal that it does not offer something, and what.
    pub(crate) not_offered: &'static [(&'static str, &'static str)],
}

/// Most bytes that are read of a refusal.
const REFUSAL_BYTES: u64 = 64 << 10;

impl Connection {
    /// Connects nowhere yet.
    ///
    /// # Errors
    /// If the address is none, or a file cannot be read.
    pub fn new(settings: &ConnectionSettings) -> Result<Self, EngineError> {
        let agent = Agent::config_builder()
            .max_redirects(0)
            .proxy(None)
            .http_status_as_error(false)
            // Bytes are bounded as they come.
            .accept_encoding("identity")
            .user_agent(concat!("outrider/", env!("CARGO_PKG_VERSION")))
            .tls_config(settings.tls()?)
            .build()
            .new_agent();
        Ok(Self {
            agent,
            url: settings.checked_url()?,
            authorization: settings.authorization()?,
        })
    }

    /// Posts `body` and reads the answer. While the engine says that it is busy or not up (429, 503), it is asked again
    /// until the deadline.
    ///
    /// # Errors
    /// If there is no whole answer in time, it is none of success, too long, or not of this shape.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        call: Call,
        body: &impl Serialize,
    ) -> Result<T, EngineError> {
        let body = written(body)?;
        let bytes = self.ask(call, Some(&body))?;
        serde_json::from_slice(&bytes).map_err(|error| EngineError::malformed(&error))
    }

    /// Gets what stands at the path of `call`, as [`Self::post`] does.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub(crate) fn get<T: DeserializeOwned>(&self, call: Call) -> Result<T, EngineError> {
        let bytes = self.ask(call, None)?;
        serde_json::from_slice(&bytes).map_err(|error| EngineError::malformed(&error))
    }

    /// Whether the path of `call` is answered with success, once and whatever it says.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn is_answered(&self, call: Call) -> Result<(), EngineError> {
        let allowed = call.deadline.saturating_duration_since(Instant::now());
        let failed = |error: ureq::Error| failure(&error, allowed, call.longest);
        let response = self.send(call.path, None, allowed).map_err(failed)?;
        match response.status().as_u16() {
            200 => Ok(()),
            status => Err(EngineError::Status(status)),
        }
    }

    /// Posts `body`, which the engine is to refuse (400); its words, of which the first 64 KiB are read.
    ///
    /// # Errors
    /// If it does not answer in time, or refuses otherwise or not at all.
    pub(crate) fn refused(&self, call: Call, body: &impl Serialize) -> Result<String, EngineError> {
        let allowed = call.deadline.saturating_duration_since(Instant::now());
        let failed = |error: ureq::Error| failure(&error, allowed, call.longest);
        let body = written(body)?;
        let mut response = self.send(call.path, Some(&body), allowed).map_err(failed)?;
        match response.status().as_u16() {
            400 => {
                let words = read_bounded(response.body_mut(), REFUSAL_BYTES).map_err(failed)?;
                Ok(String::from_utf8_lossy(&words).into_owned())
            }
            200 => Err(EngineError::Answer("was expected to be a refusal")),
            status => Err(EngineError::Status(status)),
        }
    }

    /// Posts `body`, and returns whether the engine refuses it (400 or 422).
    ///
    /// # Errors
    /// If it does not answer in time, or fails.
    pub(crate) fn refuses(&self, call: Call, body: &impl Serialize) -> Result<bool, EngineError> {
        let allowed = call.deadline.saturating_duration_since(Instant::now());
        let failed = |error: ureq::Error| failure(&error, allowed, call.longest);
        let body = written(body)?;
        let response = self.send(call.path, Some(&body), allowed).map_err(failed)?;
        match response.status().as_u16() {
            200 => Ok(false),
            400 | 422 => Ok(true),
            status => Err(EngineError::Status(status)),
        }
    }

    /// The bytes of the answer.
    fn ask(&self, call: Call, body: Option<&[u8]>) -> Result<Vec<u8>, EngineError> {
        let allowed = call.deadline.saturating_duration_since(Instant::now());
        let failed = |error: ureq::Error| failure(&error, allowed, call.longest);
        let mut back_off = BackOff::new();
        loop {
            let left = call.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(EngineError::Late(allowed));
            }
            let mut response = self.send(call.path, body, left).map_err(failed)?;
            let status = response.status().as_u16();
            match status {
                200 => return read_bounded(response.body_mut(), call.longest).map_err(failed),
                429 | 503 => {
                    let said = retry_after(response.headers());
                    let left = call.deadline.saturating_duration_since(Instant::now());
                    let Some(wait) = back_off.wait(said, left) else {
                        let tries = back_off.tries;
                        return Err(EngineError::Busy { status, tries });
                    };
                    std::thread::sleep(wait);
                }
                400 => return Err(refusal(response.body_mut(), call)),
                status => return Err(EngineError::Status(status)),
            }
        }
    }

    fn send(
        &self,
        path: &str,
        body: Option<&[u8]>,
        left: Duration,
    ) -> Result<ureq::http::Response<Body>, ureq::Error> {
        let url = format!("{}{path}", self.url);
        let Some(body) = body else {
            let request = self.authorized(self.agent.get(url));
            let request = request.config().timeout_global(Some(left)).build();
            return request.call();
        };
        let request = self.authorized(self.agent.post(url));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.config().timeout_global(Some(left)).build();
        request.send(body)
    }

    fn authorized<T>(&self, request: RequestBuilder<T>) -> RequestBuilder<T> {
        match &self.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, &authorization.0),
            None => request,
        }
    }
}

/// A body as JSON.
fn written(body: &impl Serialize) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(body)
        .map_err(|_| EngineError::Request("the request cannot be written as JSON"))
}

/// The whole body, if it has at most `longest` bytes.
fn read_bounded(body: &mut Body, longest: u64) -> Result<Vec<u8>, ureq::Error> {
    let mut bytes = Vec::new();
    // One more, to tell one that is too long.
    let mut reader = body.with_config().limit(longest + 1).reader();
    reader.read_to_end(&mut bytes).map_err(ureq::Error::from)?;
    if bytes.len() as u64 > longest {
        return Err(ureq::Error::BodyExceedsLimit(longest));
    }
    Ok(bytes)
}

/// Returns what a request was refused for, if it is one of the things known; the words themselves are not passed on.
fn refusal(body: &mut Body, call: Call) -> EngineError {
    let bytes = read_bounded(body, REFUSAL_BYTES).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes);
    let known = call
        .not_offered
        .iter()
        .find(|(said, _)| words.contains(said));
    known.map_or(EngineError::Status(400), |&(_, what)| {
        EngineError::NotOffered(what)
    })
}

fn failure(error: &ureq::Error, allowed: Duration, longest: u64) -> EngineError {
    match error {
        ureq::Error::Timeout(_) => EngineError::Late(allowed),
        ureq::Error::BodyExceedsLimit(_) => EngineError::TooLong(longest),
        other => EngineError::Unreachable(other.to_string()),
    }
}

/// How long the engine asks to wait, if it says so in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    said.trim().parse().ok().map(Duration::from_secs)
}

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits that double.
#[derive(Debug)]
pub(crate) struct BackOff {
    next: Duration,
    pub(crate) tries: u32,
}

impl BackOff {
    pub(crate) fn new() -> Self {
        Self {
            next: FIRST,
            tries: 0,
        }
    }

    /// The next wait, or what the engine says if that is longer; none if `left` is over by then.
    pub(crate) fn wait(&mut self, said: Option<Duration>, left: Duration) -> Option<Duration> {
        self.tries += 1;
        let wait = self.next.max(said.unwrap_or_default());
        self.next = (2 * self.next).min(LONGEST);
        (wait < left).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end_with_the_time() {
        let mut waits = BackOff::new();
        let left = Duration::from_secs(10);
        let found: Vec<u128> = (0..8)
            .map(|_| waits.wait(None, left).expect("time").as_millis())
            .collect();
        assert_eq!(found, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        let said = Some(Duration::from_secs(5));
        assert_eq!(waits.wait(said, left), said);
        assert_eq!(waits.wait(said, Duration::from_secs(5)), None);
        assert_eq!(waits.wait(None, Duration::from_secs(2)), None);
        assert_eq!(waits.tries, 11);
    }
}
