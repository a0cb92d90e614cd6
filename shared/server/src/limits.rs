//! What every service bounds, whatever it does. Services list their own limits beside these; all of them
//! together are the table in `docs/reference/limits.md`.

mod peer;

use std::fmt::Display;

use crate::auth::{MAX_TOKEN_CHARS, MIN_TOKEN_CHARS};
use crate::incoming::{MAX_OPENING, OPENING_TIMEOUT};
use crate::lifecycle::ServerConfig;
use crate::reflection::MAX_REQUEST_BYTES;
use crate::transport::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES};

pub use peer::{PeerBounds, peer_limits};

/// Something that is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is bounded.
    pub what: &'static str,
    /// The bound, with its unit; of a setting, its default.
    pub bound: String,
    /// The key that sets it, below the service's section; none of what is built in.
    pub setting: Option<&'static str>,
    /// What becomes of what is beyond it.
    pub beyond: &'static str,
}

impl Limit {
    /// A limit that is built in.
    pub fn fixed(what: &'static str, bound: impl Display, beyond: &'static str) -> Self {
        Self {
            what,
            bound: bound.to_string(),
            setting: None,
            beyond,
        }
    }

    /// A limit that can be set.
    pub fn set(
        what: &'static str,
        default: impl Display,
        setting: &'static str,
        beyond: &'static str,
    ) -> Self {
        Self {
            what,
            bound: default.to_string(),
            setting: Some(setting),
            beyond,
        }
    }

    /// The limit as a row of a table in Markdown.
    pub fn row(&self) -> String {
        let setting = self
            .setting
            .map_or_else(|| "built in".to_owned(), |key| format!("`{key}`"));
        let (what, bound, beyond) = (self.what, &self.bound, self.beyond);
        format!("| {what} | {bound} | {setting} | {beyond} |")
    }
}

/// Bytes as people write them.
pub fn mebibytes(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}

/// The limits of every service's port.
pub fn limits() -> Vec<Limit> {
    let config = ServerConfig::default();
    let header_kibibytes = MAX_HEADER_BYTES >> 10;
    vec![
        Limit::set(
            "open connections",
            config.max_connections,
            "server.max_connections",
            "closed at once",
        ),
        Limit::fixed(
            "connections that have not begun to speak HTTP/2",
            MAX_OPENING,
            "the oldest is closed",
        ),
        Limit::fixed(
            "time to the HTTP/2 preface, a TLS handshake included",
            format!("{} s", OPENING_TIMEOUT.as_secs()),
            "closed",
        ),
        Limit::fixed(
            "silence of a connection before a ping, and the wait for its answer",
            format!(
                "{} s + {} s",
                KEEPALIVE_INTERVAL.as_secs(),
                KEEPALIVE_TIMEOUT.as_secs()
            ),
            "closed",
        ),
        Limit::set(
            "streams of one connection",
            config.max_streams_per_connection,
            "server.max_streams_per_connection",
            "wait at the client",
        ),
        Limit::fixed(
            "metadata of a request",
            format!("{header_kibibytes} KiB"),
            "HTTP 431",
        ),
        Limit::set(
            "time for a request of one message to come whole",
            format!("{} ms", config.receive_timeout_ms),
            "server.receive_timeout_ms",
            "DEADLINE_EXCEEDED",
        ),
        Limit::set(
            "bytes of such requests that are held for one connection, until their service has them",
            config.max_receiving_bytes_per_connection,
            "server.max_receiving_bytes_per_connection",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::set(
            "bytes of such requests that are held for all connections",
            config.max_receiving_bytes,
            "server.max_receiving_bytes",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::fixed(
            "request of a client to reflection",
            format!("{} KiB", MAX_REQUEST_BYTES >> 10),
            "OUT_OF_RANGE",
        ),
        Limit::fixed(
            "characters of a token",
            format!("{MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS}"),
            "the file is refused",
        ),
        Limit::set(
            "time of open streams after the order to stop",
            format!("{} ms", config.drain_grace_ms),
            "server.drain_grace_ms",
            "cut",
        ),
    ]
}
