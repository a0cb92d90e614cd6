//! What a drafter and a verifier have in common: engines behind sessions that outlive their streams.
//!
//! ```text
//! coordinator ──stream──▶ stream.rs ──round──▶ Role::round ──task──▶ engine thread (model::engine)
//!             ◀──reply──                       turn.rs    ◀──rows──
//! ```
//!
//! Each is a [`Role`], which says what its messages are called and what is done in a round; what both do alike
//! is here: what they are bounded by and tell of themselves, the life of a stream, and how a failure is reported.

mod bounds;
mod cost;
mod counted;
mod describe;
mod error;
mod granted;
mod metrics;
mod processors;
mod replies;
mod role;
mod service;
mod stream;
mod turn;

pub use bounds::Bounds;
pub use cost::Cost;
pub use counted::CountedHistory;
pub use describe::{describe, outline};
pub use error::{PeerError, RoundError};
pub use granted::{GRANT_TIMEOUT, Granted};
pub use replies::{READ_TIMEOUT, REPLY_BUFFER, Replies};
pub use role::{Peer, Role, Said, Session, StreamRequest};
pub use service::run;
pub use stream::{IDLE_TIMEOUT, OPEN_TIMEOUT, ReplyStream, spawn};
pub use turn::{Turn, traced};
