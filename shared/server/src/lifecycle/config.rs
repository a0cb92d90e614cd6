//! How a server is bounded.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of a service's ports, as a section of its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Connections that may be open at a time on a port; for more, those are closed that ask for nothing, or they are
    /// closed themselves.
    pub max_connections: NonZeroUsize,
    /// Streams a client may have open on one connection. A coordinator carries all its sessions on
    /// one connection to each peer.
    pub max_streams_per_connection: NonZeroU32,
    /// How long a request of one message, or one over HTTP, may take to come, from its headers to its end, in ms.
    pub receive_timeout_ms: NonZeroU64,
    /// Bytes of such requests held at once for one connection, until their service has them.
    pub max_receiving_bytes_per_connection: NonZeroUsize,
    /// Bytes of such requests held at once for all connections of all ports.
    pub max_receiving_bytes: NonZeroUsize,
    /// How long connections are still accepted after the order to stop, while whoever watches the
    /// readiness learns that it fell.
    pub drain_delay_ms: u64,
    /// How long open streams may go on after the order to stop, before they are cut; drain_delay_ms
    /// is part of it.
    pub drain_grace_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_connections: const { NonZeroUsize::new(1_024).unwrap() },
            max_streams_per_connection: const { NonZeroU32::new(1_024).unwrap() },
            receive_timeout_ms: const { NonZeroU64::new(10_000).unwrap() },
            max_receiving_bytes_per_connection: const { NonZeroUsize::new(32 << 20).unwrap() },
            max_receiving_bytes: const { NonZeroUsize::new(128 << 20).unwrap() },
            drain_delay_ms: 100,
            drain_grace_ms: 10_000,
        }
    }
}

impl ServerConfig {
    /// Returns [`drain_grace_ms`](Self::drain_grace_ms) as a duration.
    pub fn drain_grace(&self) -> Duration {
        Duration::from_millis(self.drain_grace_ms)
    }
}
