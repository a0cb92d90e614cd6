//! Client channels to peers.

use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Endpoint, Uri};

use crate::Credentials;
use crate::auth::Shown;
pub use crate::connector::ConnectionCounter;
use crate::connector::Connector;
use crate::grpc_only::GrpcChannel;
use crate::loopback::is_local;
use crate::{CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, STREAM_WINDOW_BYTES};

/// How a client connects to a peer, as a section of a service's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelConfig {
    /// How long a connection may take to come about, a TLS handshake included.
    #[default(3_000)]
    pub connect_timeout_ms: u64,
}

/// A connection to a service, which shows it the process's token.
pub type PeerChannel = InterceptedService<GrpcChannel, Shown>;

/// A URL that cannot be connected to.
#[derive(Debug, thiserror::Error)]
#[error("peer {url:?}: {fault}")]
pub struct ChannelError {
    url: String,
    fault: UrlFault,
}

/// What a peer's URL looks like.
const FORM: &str = "write http://HOST:PORT or https://HOST:PORT, for example http://127.0.0.1:7001";

#[derive(Debug, thiserror::Error)]
enum UrlFault {
    #[error("not a URL ({0}); {FORM}")]
    Malformed(#[source] tonic::codegen::http::uri::InvalidUri),
    #[error("scheme {0:?} is not supported; {FORM}")]
    Scheme(String),
    #[error("missing host; {FORM}")]
    MissingHost,
    #[error("missing port; {FORM}")]
    MissingPort,
    #[error("user names and passwords are not supported; {FORM}")]
    UserInfo,
    #[error("unexpected path {0:?}; {FORM}")]
    Path(String),
    #[error("https needs tls.ca_file (--ca-file), the CAs by which the server is believed")]
    NobodyBelieved,
    #[error(
        "the token would cross the network in clear; write https://, or set insecure = true (--insecure) if \
         the network itself is trusted"
    )]
    TokenInClear,
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
pub fn connect(
    url: &str,
    config: &ChannelConfig,
    credentials: &Credentials,
) -> Result<PeerChannel, ChannelError> {
    let uri = parse(url, Trust::of(credentials))?;
    Ok(connect_to(uri, None, config, credentials).0)
}

/// Like [`connect`], to `address` if there is one, which is one of those behind the host that `uri` names: a
/// certificate is checked against the name. [`ConnectionCounter`] tells when a connection came about or broke.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn connect_to(
    uri: Uri,
    address: Option<SocketAddr>,
    config: &ChannelConfig,
    credentials: &Credentials,
) -> (PeerChannel, ConnectionCounter) {
    let connections = ConnectionCounter::default();
    let endpoint = Endpoint::from(uri)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        // A stream dropped early may still get frames that are on the way. By default the 1,024th stream
        // of which that is so closes the connection, and with it every other session's streams.
        .http2_max_local_error_reset_streams(None);
    let connector = Connector {
        address,
        timeout: Duration::from_millis(config.connect_timeout_ms),
        tls: credentials.tls.clone(),
        connections: connections.clone(),
        speaks_grpc: true,
    };
    let channel = endpoint.connect_with_connector_lazy(connector);
    let channel = InterceptedService::new(GrpcChannel(channel), credentials.auth.shown());
    (channel, connections)
}

/// What decides whether a process may connect to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Whether it can check servers' certificates.
    pub is_believing: bool,
    /// Whether it shows a token that must not cross a network in clear.
    pub hides_token: bool,
}

impl Trust {
    /// That of a running process.
    pub fn of(credentials: &Credentials) -> Self {
        Self {
            is_believing: credentials.tls.is_believing(),
            hides_token: credentials.auth.must_be_hidden(),
        }
    }
}

/// Reads a peer's URL, `http` (also where there is no scheme) or `https`, a host, a port, and nothing else. Whoever
/// is to connect there must be able to, and must not show its token to those who listen in, which `trust` decides.
///
/// # Errors
/// [`ChannelError`] quoting the URL.
pub fn parse(url: &str, trust: Trust) -> Result<Uri, ChannelError> {
    check(url, trust).map_err(|fault| ChannelError {
        url: url.to_owned(),
        fault,
    })
}

fn check(url: &str, trust: Trust) -> Result<Uri, UrlFault> {
    let with_scheme = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    let uri: Uri = with_scheme.parse().map_err(UrlFault::Malformed)?;
    let is_encrypted = match uri.scheme_str() {
        Some("https") => true,
        Some("http") | None => false,
        Some(other) => return Err(UrlFault::Scheme(other.to_owned())),
    };
    let authority = uri.authority().ok_or(UrlFault::MissingHost)?;
    if authority.as_str().contains('@') {
        return Err(UrlFault::UserInfo);
    }
    if authority.host().is_empty() {
        return Err(UrlFault::MissingHost);
    }
    // The default ports of http and https are never where a peer listens.
    if authority.port_u16().is_none() {
        return Err(UrlFault::MissingPort);
    }
    if !matches!((uri.path(), uri.query()), ("" | "/", None)) {
        return Err(UrlFault::Path(uri.path().to_owned()));
    }
    if is_encrypted && !trust.is_believing {
        return Err(UrlFault::NobodyBelieved);
    }
    if !is_encrypted && trust.hides_token && !is_local(authority.host()) {
        return Err(UrlFault::TokenInClear);
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Auth, AuthConfig};

    /// That of a process without certificates and tokens.
    fn trust() -> Trust {
        Trust::of(&Credentials::default())
    }

    #[test]
    fn a_wrong_url_is_quoted_with_its_fault() {
        for line in [
            "verifier | missing port",
            "verifier:7001/v1 | unexpected path",
            "127.0.0.1:70000 | ",
            "user:word@verifier:7001 | passwords are not supported",
            "ftp://verifier:7001 | scheme \"ftp\"",
            "http://verifier | missing port",
            "http://verifier:7001/v1 | unexpected path \"/v1\"",
            "http://user:word@verifier:7001 | passwords are not supported",
            "http://veri fier:7001 | not a URL",
            "http://:7001 | missing host",
            " | not a URL",
        ] {
            let (url, fault) = line.split_once(" | ").unwrap();
            let error = parse(url, trust()).unwrap_err().to_string();
            let parts = [
                fault,
                "write http://HOST:PORT or https",
                &format!("{url:?}"),
            ];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn without_a_scheme_it_is_http() {
        for address in [
            "localhost:7001",
            "127.0.0.1:7001",
            "[::1]:7001",
            "verifier:7001",
        ] {
            let uri = parse(address, trust()).unwrap();
            assert_eq!(uri.to_string(), format!("http://{address}/"), "{address}");
        }
    }

    /// A server that takes no connection, as one whose host is lost.
    #[tokio::test]
    async fn a_server_that_is_not_reached_in_time_is_unavailable() {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        // Its queue is full with what nobody accepts; whatever else comes is not answered.
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let waiting = (0..4).map(|_| tokio::net::TcpStream::connect(address));
        let _waiting: Vec<_> = (waiting.map(tokio::spawn)).collect();
        tokio::time::sleep(Duration::from_millis(100)).await;

        let config = ChannelConfig {
            connect_timeout_ms: 100,
        };
        let channel = connect(
            &format!("http://{address}"),
            &config,
            &Credentials::default(),
        )
        .unwrap();
        let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
        let asked = tonic_health::pb::HealthCheckRequest::default();
        let status = health.check(asked).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
        let fault = crate::fault::connection_fault(&status);
        assert_eq!(fault.as_deref(), Some("not within 100 ms"));
    }

    #[test]
    fn nobody_is_believed_without_a_ca() {
        let error = parse("https://verifier:7001", trust()).unwrap_err();
        assert!(error.to_string().contains("tls.ca_file"), "{error}");
    }

    #[test]
    fn a_token_does_not_leave_the_machine_in_clear() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "0123456789abcdef").unwrap();
        let config = AuthConfig {
            token_file: file,
            reload_seconds: 0,
            ..AuthConfig::default()
        };
        let showing = |auth| Credentials {
            auth,
            ..Credentials::default()
        };
        let process = showing(Auth::of_client(&config).unwrap());
        for url in [
            "http://127.0.0.1:7001",
            "http://127.8.9.1:7001",
            "http://[::1]:7001",
            "http://localhost:7001",
        ] {
            assert!(parse(url, Trust::of(&process)).is_ok(), "{url}");
        }
        let insecure = showing(Auth::of_client(&config).unwrap().in_clear(true));
        for url in [
            "http://10.0.0.1:7001",
            "http://[fe80::1]:7001",
            "http://verifier:7001",
            "http://localhost.example:7001",
        ] {
            let error = parse(url, Trust::of(&process)).unwrap_err().to_string();
            assert!(
                error.contains("in clear") && error.contains("--insecure"),
                "{error}"
            );
            assert!(parse(url, Trust::of(&insecure)).is_ok() && parse(url, trust()).is_ok());
        }
    }
}
