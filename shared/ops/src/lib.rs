//! What every Outrider service needs around its own work: configuration, logs, listening, health,
//! draining, session leases and client channels.
//!
//! The crate knows nothing of tokens or models and imports none of the other crates. It installs no
//! signal handler and no logger by itself: a `main` asks for them ([`shutdown::on_signal`],
//! [`telemetry::init`]), so that tests can run several services in one process.

pub mod admin;
pub mod auth;
pub mod bounded;
pub mod causes;
pub mod channel;
pub mod config;
mod connector;
pub mod deadline;
mod grpc_only;
pub mod health;
pub mod http;
mod incoming;
pub mod lease;
pub mod lifecycle;
pub mod listen;
pub mod log_throttle;
#[cfg(test)]
mod logged;
pub mod loopback;
pub mod metrics;
pub mod open_files;
mod places;
pub mod process;
pub mod progress;
pub mod receiving;
pub mod reflection;
pub mod reload;
pub mod replicas;
pub mod replies;
pub mod request_id;
mod severable;
pub mod shutdown;
pub mod spelling;
pub mod startup;
pub mod telemetry;
pub mod tls;
pub mod trace;
pub mod transport;

pub use incoming::{MAX_OPENING, OPENING_TIMEOUT};
