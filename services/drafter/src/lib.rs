//! The drafter service: proposes draft tokens with small models, with Max-Gram, or with a cascade of them.
//!
//! ```text
//! coordinator ──Draft stream──▶ stream.rs ──task──▶ engine threads (model::engine), one a model
//!             ◀──DraftBlock────            ◀──drafted tokens──  task.rs, cascade.rs
//! ```
//!
//! What it has in common with a verifier is in [`peer`].

// A new value of an axis is to be missed wherever axes are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

mod ahead;
mod block;
mod cascade;
mod config;
mod draft_params;
mod fits;
mod grams;
mod inspection;
mod loaded;
mod proposers;
mod service;
mod stream;
mod tables;
mod task;
mod translated;
mod translations;

pub use ahead::{BYTES_A_SECOND, MOST_LEVELS};
pub use config::{CascadeSection, DrafterConfig};
pub use inspection::{Inspection, inspect};
pub use loaded::Loaded;
pub use proposers::{Drafter, Proposers};
pub use service::{run, start};
