//! The drafter service: proposes draft tokens with small models, with Max-Gram, or with a cascade of them.
//!
//! ```text
//! coordinator ──Draft stream──▶ stream.rs ──task──▶ engine threads (model::engine), one a model
//!             ◀──DraftBlock────            ◀──drafted tokens──  task.rs, cascade.rs
//! ```

mod asked;
mod block;
mod cascade;
mod config;
mod describe;
mod error;
mod figures;
mod grams;
mod limits;
mod loaded;
mod proposers;
mod report;
mod service;
mod session;
mod shared;
mod stream;
mod task;

pub use config::{CascadeSection, DrafterConfig, MaxGramDraft};
pub use error::DrafterError;
pub use limits::limits;
pub use loaded::Loaded;
pub use service::{Drafter, Monitor, run};
