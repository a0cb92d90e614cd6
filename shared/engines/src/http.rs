//! The connection to an engine.
//!
//! Where it is comes from the operator's configuration alone: no redirect is followed, and no proxy of the environment
//! is used. Answers are bounded in bytes and in time.

use std::io::Read;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{HeaderMap, HeaderValue, header};
use ureq::{Agent, Body, RequestBuilder};

use crate::error::ScoringError;
use crate::settings::ConnectionSettings;

/// A connection to one engine, with those that wait to be used again.
#[derive(Debug)]
pub struct EngineConnection {
    agent: Agent,
    url: String,
    authorization: Option<HeaderValue>,
}

/// One request, and what is known of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpCall {
    pub(crate) path: &'static str,
    /// Most bytes of an answer.
    pub(crate) longest: u64,
    pub(crate) deadline: Instant,
    /// Words by which the engine says in a refusal that it does not offer something, and what.
    pub(crate) not_offered: &'static [(&'static str, &'static str)],
}

/// Most bytes of what an engine says of itself: SGLang tells all its settings.
const LONGEST_DESCRIPTION: u64 = 4 << 20;

impl HttpCall {
    /// Returns a call to `path`, where the engine says something of itself.
    pub(crate) fn to_ask(path: &'static str, deadline: Instant) -> Self {
        Self {
            path,
            longest: LONGEST_DESCRIPTION,
            deadline,
            not_offered: &[],
        }
    }

    /// Returns the time that is left.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Most bytes that are read of a refusal.
const REFUSAL_BYTES: u64 = 64 << 10;

impl EngineConnection {
    /// Connects nowhere yet.
    ///
    /// # Errors
    /// If the address is none, or a file cannot be read.
    pub fn new(settings: &ConnectionSettings) -> Result<Self, ScoringError> {
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
        call: HttpCall,
        body: &impl Serialize,
    ) -> Result<T, ScoringError> {
        let body = written(body)?;
        let bytes = self.ask(call, Some(&body))?;
        serde_json::from_slice(&bytes).map_err(|error| ScoringError::malformed(&error))
    }

    /// Gets what stands at the path of `call`, as [`Self::post`] does.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub(crate) fn get<T: DeserializeOwned>(&self, call: HttpCall) -> Result<T, ScoringError> {
        let bytes = self.ask(call, None)?;
        serde_json::from_slice(&bytes).map_err(|error| ScoringError::malformed(&error))
    }

    /// Checks that the path of `call` is answered with success, once and whatever it says.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn is_answered(&self, call: HttpCall) -> Result<(), ScoringError> {
        match self.once(call, None)?.status().as_u16() {
            200 => Ok(()),
            status => Err(ScoringError::Status(status)),
        }
    }

    /// Posts `body` once. If the engine refuses it (400 or 422), returns the first 64 KiB of its words.
    ///
    /// # Errors
    /// If it does not answer in time, or fails.
    pub(crate) fn refusal(
        &self,
        call: HttpCall,
        body: &impl Serialize,
    ) -> Result<Option<String>, ScoringError> {
        let allowed = call.left();
        let mut response = self.once(call, Some(&written(body)?))?;
        match response.status().as_u16() {
            200 => Ok(None),
            400 | 422 => {
                let words = read_bounded(response.body_mut(), REFUSAL_BYTES);
                let words = words.map_err(|error| failure(&error, allowed, call.longest))?;
                Ok(Some(String::from_utf8_lossy(&words).into_owned()))
            }
            status => Err(ScoringError::Status(status)),
        }
    }

    /// Sends the request once, and returns the response whatever its status.
    fn once(
        &self,
        call: HttpCall,
        body: Option<&[u8]>,
    ) -> Result<ureq::http::Response<Body>, ScoringError> {
        let allowed = call.left();
        let sent = self.send(call.path, body, allowed);
        sent.map_err(|error| failure(&error, allowed, call.longest))
    }

    /// Returns the bytes of the answer.
    fn ask(&self, call: HttpCall, body: Option<&[u8]>) -> Result<Vec<u8>, ScoringError> {
        let allowed = call.left();
        let failed = |error: ureq::Error| failure(&error, allowed, call.longest);
        let mut back_off = BackOff::new();
        loop {
            let left = call.left();
            if left.is_zero() {
                return Err(ScoringError::Late(allowed));
            }
            let mut response = self.send(call.path, body, left).map_err(failed)?;
            let status = response.status().as_u16();
            match status {
                200 => return read_bounded(response.body_mut(), call.longest).map_err(failed),
                429 | 503 => {
                    let said = retry_after(response.headers());
                    let left = call.left();
                    let Some(wait) = back_off.wait(said, left) else {
                        let tries = back_off.tries;
                        return Err(ScoringError::Busy { status, tries });
                    };
                    std::thread::sleep(wait);
                }
                400 => return Err(refusal(response.body_mut(), call)),
                status => return Err(ScoringError::Status(status)),
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
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        }
    }
}

/// Returns a body as JSON.
fn written(body: &impl Serialize) -> Result<Vec<u8>, ScoringError> {
    serde_json::to_vec(body)
        .map_err(|_| ScoringError::Request("the request cannot be written as JSON"))
}

/// Returns the whole body, if it has at most `longest` bytes.
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
fn refusal(body: &mut Body, call: HttpCall) -> ScoringError {
    let bytes = read_bounded(body, REFUSAL_BYTES).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes);
    let known = call
        .not_offered
        .iter()
        .find(|(said, _)| words.contains(said));
    known.map_or(ScoringError::Status(400), |&(_, what)| {
        ScoringError::NotOffered(what)
    })
}

fn failure(error: &ureq::Error, allowed: Duration, longest: u64) -> ScoringError {
    match error {
        ureq::Error::Timeout(_) => ScoringError::Late(allowed),
        ureq::Error::BodyExceedsLimit(_) => ScoringError::TooLong(longest),
        other => ScoringError::Unreachable(other.to_string()),
    }
}

/// Returns how long the engine asks to wait, if it says so in seconds.
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

    /// Returns the next wait, or what the engine says if that is longer; none if `left` is over by then.
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
