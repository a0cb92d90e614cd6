//! The verifier service: scores draft blocks with the target model and decides them.
//!
//! ```text
//! coordinator ──Verify stream──▶ stream.rs ──Scorer──▶ engine.rs: the engine thread (model::engine)
//!             ◀──Verdict, Slice, Decoded──           or remote.rs: SGLang, vLLM (engines)
//! ```
//!
//! What it has in common with a drafter is in [`peer`].

// A new value of an axis is to be missed wherever axes are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

mod config;
mod drafts;
mod engine;
mod load;
mod remote;
mod scorer;
mod service;
mod stream;

pub use config::{RemoteConfig, VerifierConfig};
pub use engines::RemoteEngine;
pub use load::{LoadedTarget, inspect, load, outline, run, start};
pub use remote::{RemoteModel, ask_engine};
pub use scorer::{Verifier, VerifierRole};
