//! Client channels to peers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonic::transport::{Channel, Endpoint};

use crate::transport::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, STREAM_WINDOW_BYTES,
};

/// How a client connects to a peer, as a section of a service's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelConfig {
    /// How long the TCP connection may take to come about.
    pub connect_timeout_ms: u64,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 3_000,
        }
    }
}

/// A URL that cannot name a peer.
#[derive(Debug, thiserror::Error)]
#[error("peer {url:?}: {fault}; write http://HOST:PORT")]
pub struct ChannelError {
    url: String,
    fault: Fault,
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("not a URL ({0})")]
    Malformed(#[source] tonic::codegen::http::uri::InvalidUri),
    #[error("missing scheme")]
    MissingScheme,
    #[error("scheme {0:?} is not supported")]
    Scheme(String),
    #[error("missing host")]
    MissingHost,
    #[error("missing port")]
    MissingPort,
    #[error("user names and passwords are not supported")]
    UserInfo,
    #[error("unexpected path {0:?}")]
    Path(String),
}

/// Makes a channel to the peer at `url`, which connects with its first request and again after every
/// loss.
///
/// Requests wait for the connection no longer than the connect timeout; how long a reply may take is
/// each request's own affair.
///
/// # Errors
/// [`ChannelError`] quoting the URL.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn connect(url: &str, config: &ChannelConfig) -> Result<Channel, ChannelError> {
    let uri = parse(url)?;
    let endpoint = Endpoint::from(uri)
        .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        // A stream dropped early may still get frames that are on the way. By default the 1,024th stream
        // of which that is so closes the connection, and with it every other session's streams.
        .http2_max_local_error_reset_streams(None);
    Ok(endpoint.connect_lazy())
}

/// Reads a peer's URL: `http`, a host, a port, and nothing else.
///
/// # Errors
/// [`ChannelError`] quoting the URL.
pub fn parse(url: &str) -> Result<tonic::transport::Uri, ChannelError> {
    check(url).map_err(|fault| ChannelError {
        url: url.to_owned(),
        fault,
    })
}

fn check(url: &str) -> Result<tonic::transport::Uri, Fault> {
    let uri: tonic::transport::Uri = url.parse().map_err(Fault::Malformed)?;
    match uri.scheme_str() {
        Some("http") => {}
        Some(other) => return Err(Fault::Scheme(other.to_owned())),
        None => return Err(Fault::MissingScheme),
    }
    let Some(authority) = uri.authority() else {
        return Err(Fault::MissingHost);
    };
    if authority.as_str().contains('@') {
        return Err(Fault::UserInfo);
    }
    if authority.host().is_empty() {
        return Err(Fault::MissingHost);
    }
    // The default port of http is never where a peer listens.
    if authority.port_u16().is_none() {
        return Err(Fault::MissingPort);
    }
    match (uri.path(), uri.query()) {
        ("" | "/", None) => Ok(uri),
        (path, _) => Err(Fault::Path(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn urls_of_peers_connect_lazily() {
        for url in [
            "http://127.0.0.1:7001",
            "http://[::1]:7001/",
            "http://verifier:7001",
        ] {
            assert!(connect(url, &ChannelConfig::default()).is_ok(), "{url}");
        }
    }

    #[tokio::test]
    async fn a_wrong_url_is_quoted_with_its_fault() {
        let wrong = [
            ("localhost:7001", "missing scheme"),
            ("verifier", "missing scheme"),
            ("https://verifier:7001", "scheme \"https\""),
            ("http://verifier", "missing port"),
            ("http://verifier:7001/v1", "unexpected path \"/v1\""),
            (
                "http://user:word@verifier:7001",
                "passwords are not supported",
            ),
            ("http://veri fier:7001", "not a URL"),
            ("http://:7001", "missing host"),
            ("", "not a URL"),
        ];
        for (url, fault) in wrong {
            let error = connect(url, &ChannelConfig::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(fault), "{url:?} gave {error:?}");
            assert!(error.contains("write http://HOST:PORT"), "{error:?}");
        }
    }
}
