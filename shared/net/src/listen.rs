//! Addresses to listen on, and the limits of what listens there.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use derive_more::{Display, From};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tokio::net::TcpListener;

/// An address to listen on, written `127.0.0.1:7001` or `[::1]:7001`; `localhost:7001` and `:7001` are the first of
/// these. Port 0 lets the system choose.
///
/// It is an IP address and no other host name, so that what a service exposes does not depend on a
/// resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display, From)]
#[serde(try_from = "String")]
pub struct Listen(SocketAddr);

impl Listen {
    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.0
    }

    /// Binds the address now, so that a port already taken is found before any model is loaded.
    ///
    /// # Errors
    /// [`BindError`] naming the address.
    pub async fn bind(&self) -> Result<TcpListener, BindError> {
        TcpListener::bind(self.0).await.map_err(|source| BindError {
            address: self.0,
            source,
        })
    }
}

/// Where a port beside a service listens, if there is one: `IP:PORT`, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum OptionalListen {
    /// There is none.
    Off,
    /// At this address.
    At(Listen),
}

impl OptionalListen {
    /// At `port` of this machine alone.
    pub fn on_loopback(port: u16) -> Self {
        Self::At(SocketAddr::from(([127, 0, 0, 1], port)).into())
    }

    /// Returns the address, if there is one.
    pub fn listen(self) -> Option<Listen> {
        match self {
            Self::Off => None,
            Self::At(listen) => Some(listen),
        }
    }

    /// Binds the address, if there is one. Where nobody chose it (`is_chosen`), the first free one of `ports` ports
    /// from it on; if there is none, the process goes on without `what`, and says so.
    ///
    /// # Errors
    /// [`BindError`] naming the address.
    pub async fn bind(
        self,
        is_chosen: bool,
        ports: u16,
        what: &str,
    ) -> Result<Option<TcpListener>, BindError> {
        let Self::At(listen) = self else {
            return Ok(None);
        };
        let mut bound = listen.bind().await;
        if is_chosen {
            return bound.map(Some);
        }
        let mut others = 1..ports;
        while let (Err(_), Some(further)) = (&bound, others.next()) {
            let mut address = listen.0;
            address.set_port(address.port().saturating_add(further));
            bound = Listen(address).bind().await;
        }
        if let Err(error) = &bound {
            tracing::warn!(%error, "this process has no {what}");
        }
        Ok(bound.ok())
    }
}

impl TryFrom<String> for OptionalListen {
    type Error = ListenError;

    fn try_from(text: String) -> Result<Self, ListenError> {
        match text.as_str() {
            "" | "off" => Ok(Self::Off),
            address => Ok(Self::At(address.parse()?)),
        }
    }
}

impl From<OptionalListen> for String {
    fn from(listen: OptionalListen) -> Self {
        match listen {
            OptionalListen::Off => "off".to_owned(),
            OptionalListen::At(address) => address.to_string(),
        }
    }
}

/// Refuses an address that other machines can reach, for a service that must not be; `setting` is the key of
/// the address, and `remedy` says what else can be done.
///
/// # Errors
/// [`ExposedError`] naming them.
pub fn check_exposed(
    setting: &'static str,
    listen: Listen,
    remedy: &'static str,
) -> Result<(), ExposedError> {
    if listen.0.ip().is_loopback() {
        return Ok(());
    }
    Err(ExposedError {
        setting,
        address: listen.0,
        remedy,
    })
}

/// A service that would be reached in clear from other machines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{setting}: {address} can be reached from other machines, and nothing is encrypted there; listen on \
     127.0.0.1, {remedy}"
)]
pub struct ExposedError {
    setting: &'static str,
    address: SocketAddr,
    remedy: &'static str,
}

/// Text that is not an address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no address to listen on; write IP:PORT, for example 127.0.0.1:7001, or :7001 for this machine alone"
)]
pub struct ListenError {
    text: String,
}

/// An address that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}{}", hint(source))]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Says what to do where another process has the address.
fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; choose another port (--listen, for the OpenAI API --http, or the service's `listen`), or see `outrider \
             doctor` for who has it"
        }
        _ => "",
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let of_this_machine = text.strip_prefix("localhost").unwrap_or(text);
        let address = match of_this_machine.strip_prefix(':').map(str::parse) {
            Some(Ok(port)) => Some(SocketAddr::from(([127, 0, 0, 1], port))),
            _ => text.parse().ok(),
        };
        address.map(Self).ok_or_else(|| ListenError {
            text: text.to_owned(),
        })
    }
}

impl TryFrom<String> for Listen {
    type Error = ListenError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Limits of a service's ports, as a section of its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Connections that may be open at a time on a port; for more, those are closed that ask for nothing, or they are
    /// closed themselves.
    #[default(const { NonZeroUsize::new(1_024).unwrap() })]
    pub max_connections: NonZeroUsize,
    /// Streams a client may have open on one connection. A coordinator carries all its sessions on
    /// one connection to each peer.
    #[default(const { NonZeroU32::new(1_024).unwrap() })]
    pub max_streams_per_connection: NonZeroU32,
    /// How long a request of one message, or one over HTTP, may take to come, from its headers to its end, in ms.
    #[default(const { NonZeroU64::new(10_000).unwrap() })]
    pub receive_timeout_ms: NonZeroU64,
    /// Bytes of such requests held at once for one connection, until their service has them.
    #[default(const { NonZeroUsize::new(32 << 20).unwrap() })]
    pub max_receiving_bytes_per_connection: NonZeroUsize,
    /// Bytes of such requests held at once for all connections of all ports.
    #[default(const { NonZeroUsize::new(128 << 20).unwrap() })]
    pub max_receiving_bytes: NonZeroUsize,
    /// How long connections are still accepted after the order to stop, while whoever watches the
    /// readiness learns that it fell.
    #[default(100)]
    pub drain_delay_ms: u64,
    /// How long open streams may go on after the order to stop, before they are cut; drain_delay_ms
    /// is part of it.
    #[default(10_000)]
    pub drain_grace_ms: u64,
}

impl ServerConfig {
    /// Returns [`drain_grace_ms`](Self::drain_grace_ms) as a duration.
    pub fn drain_grace(&self) -> Duration {
        Duration::from_millis(self.drain_grace_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listen_address_is_an_ip_and_a_port() {
        for text in ["127.0.0.1:7001", "[::1]:7001", "0.0.0.0:0"] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.to_string(), text);
        }
        for text in ["localhost:7001", ":7001"] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.to_string(), "127.0.0.1:7001", "{text}");
        }
        for text in [
            "example:7001",
            "localhost",
            "localhost:",
            ":70000",
            "localhost7001",
            "127.0.0.1",
            "7001",
            "127.0.0.1:70000",
            "",
        ] {
            let error = text.parse::<Listen>().unwrap_err().to_string();
            let parts = [
                &format!("{text:?}"),
                "IP:PORT",
                "127.0.0.1:7001",
                ":7001 for",
            ];
            assert!(parts.iter().all(|part| error.contains(*part)), "{error}");
        }
    }

    #[test]
    fn only_loopback_is_not_exposed() {
        let check = |text: &str| check_exposed("x.listen", text.parse().unwrap(), "or allow it");
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
            assert_eq!(check(text), Ok(()));
        }
        for text in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1", "192.168.1.1:0"] {
            let error = check(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("x.listen: {text}")) && error.ends_with("or allow it"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn where_nobody_chose_a_port_the_next_free_one_is_taken() {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken = first.local_addr().unwrap();
        let listen = OptionalListen::At(taken.into());
        assert!(listen.bind(true, 3, "port").await.is_err());
        assert!(listen.bind(false, 1, "port").await.unwrap().is_none());
        let next = listen.bind(false, 20, "port").await.unwrap().unwrap();
        let next = next.local_addr().unwrap();
        assert!(
            next.ip() == taken.ip() && next.port() > taken.port(),
            "{next}"
        );
    }

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = Listen::from(first.local_addr().unwrap());
        let error = listen.bind().await.unwrap_err();
        assert!(error.to_string().contains(&listen.to_string()), "{error}");
    }
}
