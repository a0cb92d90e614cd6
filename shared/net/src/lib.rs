//! What listens and connects: addresses and ports, TLS, tokens, connections in both directions with their bounds, and
//! the replicas of a peer.
//!
//! The crate knows nothing of tokens of models and imports none of the other crates. What it does is observed and
//! configured in `ops`.

pub mod auth;
pub mod bounded;
pub mod causes;
pub mod channel;
pub mod connector;
pub mod deadline;
pub mod grpc_only;
pub mod http;
pub mod incoming;
pub mod listen;
pub mod log_throttle;
#[cfg(test)]
mod logged;
pub mod loopback;
mod places;
pub mod receiving;
pub mod reload;
pub mod replicas;
mod severable;
pub mod tls;
pub mod transport;

use auth::Auth;
pub use incoming::{MAX_OPENING, OPENING_TIMEOUT};
use tls::Tls;

/// Who a process is to others, and whom it trusts. The default is a process without certificates and tokens.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Its certificate, and the CAs that it trusts.
    pub tls: Tls,
    /// The tokens it asks for, and the one it shows.
    pub auth: Auth,
}
