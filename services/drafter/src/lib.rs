//! The drafter service: proposes draft tokens with a small model.
//!
//! ```text
//! coordinator ──Draft stream──▶ stream.rs ──task──▶ engine thread (model::engine)
//!             ◀──DraftBlock────            ◀──drafted tokens──  task.rs
//! ```

mod block;
mod config;
mod error;
mod service;
mod session;
mod stream;
mod task;

pub use config::DrafterConfig;
pub use error::DrafterError;
pub use service::{Drafter, Monitor, run};
