//! The verifier service: scores draft blocks with the target model and decides them.
//!
//! ```text
//! coordinator ──Verify stream──▶ stream.rs ──task──▶ engine thread (model::engine)
//!             ◀──Verdict, Slice, Decoded──          ◀──  scoring.rs (verify.rs, tree.rs, logprobs.rs), decode.rs
//! ```
//!
//! Where an engine elsewhere computes the target model, `remote.rs` takes the place of the engine thread.
//!
//! What it has in common with a drafter is in [`peer`].

// A new value of an axis is to be missed wherever axes are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

mod config;
mod decode;
mod load;
mod logprobs;
mod remote;
mod scoring;
mod service;
mod stream;
mod tree;
mod verify;

pub use config::{RemoteConfig, VerifierConfig};
pub use engines::Kind as EngineKind;
pub use load::{Loaded, inspect, load, outline, run, start};
pub use peer::PeerError;
pub use remote::{RemoteModel, ask_engine};
pub use service::{Target, Verifier};
