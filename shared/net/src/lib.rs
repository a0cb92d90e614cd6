//! What listens and connects: addresses and ports, TLS, tokens, connections in both directions with their bounds, and
//! the replicas of a peer.
//!
//! The crate knows nothing of models and imports none of the other crates. What it does is observed and
//! configured in `ops`.

pub mod auth;
pub mod bounded;
pub mod channel;
pub mod connector;
pub mod deadline;
pub mod fault;
pub mod grpc_only;
pub mod http;
pub mod incoming;
pub mod listen;
pub mod log_throttle;
pub mod loopback;
pub mod receiving;
pub mod reload;
pub mod replicas;
mod slots;
pub mod tls;

use std::time::Duration;

use auth::Auth;
pub use incoming::{MAX_OPENING, OPENING_TIMEOUT};
use tls::Tls;

/// The largest message either end accepts; set it on every generated client and server.
///
/// tonic's own limit is 4 MiB for what is received and none for what is sent. The largest message
/// here is a tokenizer file, beyond 30 MB for vocabularies of 256k tokens; a block of 32 dense f32
/// rows over 152k tokens takes 19 MB.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// How long a connection may be silent before an HTTP/2 ping is sent.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// How long the answer to that ping may take before the connection counts as dead.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Flow-control window of one stream.
///
/// One dense row is 608 KB, and with HTTP/2's 64 KiB it would stall for ten round trips. The
/// adaptive window is no remedy: it starts at 64 KiB and grows only with traffic that a session of
/// short rounds does not have.
pub const STREAM_WINDOW_BYTES: u32 = 4 << 20;

/// Flow-control window of a connection, which all its streams share.
pub const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;

/// Largest metadata of a request, as HTTP/2 counts it: names, values and 32 bytes for each.
pub const MAX_HEADER_BYTES: u32 = 16 << 10;

/// Who a process is to others, and whom it trusts. The default is a process without certificates and tokens.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Its certificate, and the CAs that it trusts.
    pub tls: Tls,
    /// The tokens it asks for, and the one it shows.
    pub auth: Auth,
}

#[cfg(test)]
mod tests;
