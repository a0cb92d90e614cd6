//! What observes and configures a process and the services in it: configuration, logs, metrics, traces, health, the
//! admin port, and how services begin, drain and end.
//!
//! The crate knows nothing of tokens of models and imports `net` alone. It installs no
//! signal handler and no logger by itself: a `main` asks for them ([`shutdown::on_signal`],
//! [`telemetry::init`]), so that tests can run several services in one process.

pub mod admin;
pub mod config;
pub mod health;
pub mod lifecycle;
pub mod metrics;
pub mod open_files;
pub mod process;
pub mod reflection;
pub mod service_error;
pub mod shutdown;
pub mod telemetry;
pub mod trace;
