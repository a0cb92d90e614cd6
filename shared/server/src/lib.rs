//! What every Outrider service needs around its own work: configuration, logs, listening, health,
//! draining, session leases and client channels.
//!
//! The crate knows nothing of tokens or models and imports none of the other crates. It installs no
//! signal handler and no logger by itself: a `main` asks for them ([`shutdown::on_signal`],
//! [`telemetry::init`]), so that tests can run several services in one process.

pub mod channel;
pub mod config;
pub mod deadline;
pub mod health;
pub mod lease;
pub mod lifecycle;
pub mod listen;
pub mod reflection;
pub mod replies;
mod severable;
pub mod shutdown;
pub mod stream;
pub mod telemetry;
pub mod transport;
