//! What a drafter and a verifier have in common: engines behind sessions that outlive their streams.
//!
//! ```text
//! coordinator ──stream──▶ stream.rs ──round──▶ Role::round ──task──▶ engine thread (model::engine)
//!             ◀──reply──                     context.rs   ◀──rows──
//! ```
//!
//! Each is a [`Role`], which says what is done in a round; what both do alike is here: what they are bounded by and
//! tell of themselves, the life of a stream, and how a failure is reported.

mod commits;
mod context;
mod describe;
mod error;
mod granted;
pub mod lease;
mod lent;
mod metrics;
pub mod progress;
mod proposals;
pub mod replies;
mod role;
mod service;
mod stream;

pub use commits::{Commit, Commits};
pub use context::{Cost, READ_TIMEOUT, REPLY_BUFFER, RoundContext};
pub use describe::{describe, grammars, outline};
pub use error::RoundError;
pub use granted::{GRANT_TIMEOUT, Granted};
pub use lent::{Lent, LentSlot};
pub use proposals::Proposals;
pub use role::{CountedHistory, HeldSession, PeerServer, Role};
pub use service::{Bounds, run};
pub use stream::{IDLE_TIMEOUT, OPEN_TIMEOUT, ReplyStream, spawn};
