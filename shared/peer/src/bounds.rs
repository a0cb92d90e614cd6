//! What bounds a drafter or a verifier.

use std::num::{NonZeroU32, NonZeroUsize};

use model::engine::EngineConfig;
use server::lifecycle::ServerConfig;
use server::transport::MAX_MESSAGE_BYTES;
use wire::{open, v1};

/// The bounds in the configuration of a drafter or a verifier.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Most draft tokens in one round.
    pub max_draft_tokens: NonZeroU32,
    /// Most sessions, with an open stream or waiting for their next one.
    pub max_sessions: NonZeroUsize,
    /// Bounds of each model's engine.
    pub engine: EngineConfig,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
}

impl Bounds {
    /// Bounds of each model's engine, with room for a round's draft tree.
    pub fn engine(&self) -> EngineConfig {
        EngineConfig {
            tree_tokens: self.max_draft_tokens.get() as usize,
            ..self.engine
        }
    }

    /// Returns what a coordinator is told of the bounds.
    pub fn to_wire(&self) -> v1::PeerLimits {
        v1::PeerLimits {
            max_draft_tokens: self.max_draft_tokens.get(),
            max_sessions: self.max_sessions.get() as u32,
            max_message_bytes: MAX_MESSAGE_BYTES as u32,
            max_lease_ms: open::MAX_LEASE_MS,
        }
    }
}
