//! Configuration of a verifier.

use std::num::{NonZeroU32, NonZeroUsize};

use model::engine::EngineConfig;
use model::source::ModelSource;
use serde::{Deserialize, Serialize};
use server::lifecycle::ServerConfig;
use server::listen::Listen;

/// Section `verifier` of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifierConfig {
    /// Address to listen on.
    pub listen: Listen,
    /// The target model.
    pub model: ModelSource,
    /// Most draft tokens in one round.
    pub max_draft_tokens: NonZeroU32,
    /// Most sessions, with an open stream or waiting for their next one.
    pub max_sessions: NonZeroUsize,
    /// Most sequences whose keys and values are kept in memory; the session used the longest time ago
    /// is prefilled again when it comes back. Fewer than a coordinator's max_requests make them
    /// evict each other.
    pub max_cached_sequences: NonZeroUsize,
    /// Most tokens whose keys and values are kept in memory, of all sequences together, counted in
    /// pages of 64. 0 is as many as max_cached_sequences of the model's whole context. Beyond it idle
    /// sequences are prefilled again when they come back, and of running ones the youngest wait; a sequence
    /// longer than all of it is refused.
    pub kv_tokens: usize,
    /// Whether sessions of one tenant share what was computed of equal beginnings; kept within kv_tokens.
    pub prefix_sharing: bool,
    /// Most sequences in one forward.
    pub max_batch: NonZeroUsize,
    /// Most tokens in one forward; prompts share what blocks leave of them.
    pub max_batch_tokens: NonZeroUsize,
    /// Most rounds waiting for the engine; more are refused with a time to wait.
    pub max_queue: NonZeroUsize,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
}

impl VerifierConfig {
    /// The bounds of its engine.
    pub(crate) fn engine(&self) -> EngineConfig {
        EngineConfig {
            max_batch: self.max_batch,
            queue: self.max_queue,
            max_batch_tokens: self.max_batch_tokens,
            max_sequences: self.max_cached_sequences,
            kv_tokens: NonZeroUsize::new(self.kv_tokens),
            tree_tokens: self.max_draft_tokens.get() as usize,
            prefix_sharing: self.prefix_sharing,
            ..EngineConfig::default()
        }
    }
}

impl Default for VerifierConfig {
    fn default() -> Self {
        let default_address = std::net::SocketAddr::from(([127, 0, 0, 1], 7201));
        Self {
            listen: default_address.into(),
            model: ModelSource::embedded("target"),
            max_draft_tokens: const { NonZeroU32::new(64).unwrap() },
            max_sessions: const { NonZeroUsize::new(1_024).unwrap() },
            max_cached_sequences: const { NonZeroUsize::new(256).unwrap() },
            kv_tokens: 0,
            prefix_sharing: false,
            max_batch: const { NonZeroUsize::new(32).unwrap() },
            max_batch_tokens: const { NonZeroUsize::new(512).unwrap() },
            max_queue: const { NonZeroUsize::new(256).unwrap() },
            server: ServerConfig::default(),
        }
    }
}
