//! The verifier service: scores draft blocks with the target model and decides them.
//!
//! ```text
//! coordinator ──Verify stream──▶ stream.rs ──task──▶ engine thread (model::engine)
//!             ◀──Verdict, Slice, Decoded──          ◀──  verify.rs, tree.rs, score.rs, decode.rs
//! ```

mod config;
mod cost;
mod decode;
mod error;
mod figures;
mod limits;
mod rows;
mod score;
mod service;
mod session;
mod shared;
mod stream;
mod tree;
mod verify;

pub use config::VerifierConfig;
pub use error::VerifierError;
pub use limits::limits;
pub use service::{Monitor, Verifier, load, run};
