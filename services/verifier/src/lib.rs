//! The verifier service: scores draft blocks with the target model and decides them.
//!
//! ```text
//! coordinator ──Verify stream──▶ stream.rs ──task──▶ engine thread (model::engine)
//!             ◀──Verdict, Slice, Decoded──          ◀──  scoring.rs (verify.rs, tree.rs, score.rs), decode.rs
//! ```
//!
//! Where an engine elsewhere computes the target model, `remote.rs` takes the place of the engine thread.
//!
//! What it has in common with a drafter is in [`peer`].

// A new value of an axis is to be missed wherever axes are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

mod config;
mod decode;
mod logprobs;
mod prompt;
mod remote;
mod rows;
mod score;
mod scoring;
mod service;
mod stream;
mod target;
mod tree;
mod verify;

pub use config::VerifierConfig;
pub use engines::Kind as EngineKind;
pub use peer::PeerError;
pub use remote::{RemoteConfig, RemoteModel, ask_engine};
pub use service::{Loaded, inspect, load, outline, run, start};
pub use target::{Target, Verifier};
