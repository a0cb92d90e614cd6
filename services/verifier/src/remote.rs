//! A target model that an engine elsewhere computes: SGLang or vLLM, as they are.
//!
//! ```text
//! stream.rs ──chain──▶ resolve.rs ──asks──▶ queue.rs ──sessions together──▶ engines ──HTTP──▶ SGLang, vLLM
//!           ◀─verdict─             ◀─parts of rows──
//! ```
//!
//! The engine returns the most likely tokens of a row and those that were asked for, and what follows from that is
//! proved ([`speculation::certificate`]). What is not proved is asked for again, with more.
//!
//! The engine may become another one meanwhile. `watch` asks it what it is, each round asks for one row again that it has
//! seen before (`seen`), and `standing` holds what is known.

mod load;
mod queue;
mod resolve;
mod rounds;
mod seen;
mod standing;
mod watch;

pub(crate) use load::load;
pub use load::{RemoteModel, ask_engine};

use std::sync::Arc;

use engines::EngineCaps;
use queue::Queue;
use seen::SeenRow;
use standing::Standing;

/// Its section in that of the verifier.
const SECTION: &str = "remote";

/// An engine elsewhere, and what waits for it.
pub(crate) struct Remote {
    queue: Queue,
    caps: EngineCaps,
    /// Length of its rows, those of the tokenizer and what pads them.
    row_len: usize,
    standing: Arc<Standing>,
    /// Whether tenants may share the engine's prefix cache.
    shares_tenants: bool,
}

/// What the engine elsewhere has seen of a session; nothing where this process computes the model.
#[derive(Debug, Default)]
pub struct RemoteSession {
    /// How many of its first tokens the engine has read, and may still hold.
    read: usize,
    /// How many tokens the engine found in its cache before it had read them for this session, and no round has told yet.
    reused: usize,
    /// How many it was made to read before the next request; [`usize::MAX`] once a round told what was found.
    counted: usize,
    /// The engine's generation when the session's stream was opened; see [`Standing`].
    generation: Option<u32>,
    /// The row that the latest token was decided by.
    last: Option<SeenRow>,
    /// Separates this session's entries in the engine's prefix cache from those of other tenants.
    salt: Arc<str>,
}

#[cfg(test)]
mod tests;
