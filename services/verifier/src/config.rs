//! Configuration of a verifier.

use std::num::{NonZeroU32, NonZeroUsize};

use model::engine::EngineConfig;
use model::source::ModelSource;
use peer::{Bounds, PeerError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::lifecycle::ServerConfig;
use server::listen::Listen;

use crate::remote::RemoteConfig;

/// Its section of the configuration, and what it is called in metrics and traces.
pub(crate) const ROLE: &str = "verifier";

/// Section `verifier` of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VerifierConfig {
    /// Address to listen on.
    pub listen: Listen,
    /// The target model.
    pub model: ModelSource,
    /// An engine elsewhere that computes it, SGLang or vLLM.
    pub remote: RemoteConfig,
    /// Most draft tokens in one round.
    pub max_draft_tokens: NonZeroU32,
    /// Most sessions, with an open stream or waiting for their next one.
    pub max_sessions: NonZeroUsize,
    /// Bounds of the engine.
    pub engine: EngineConfig,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
}

impl VerifierConfig {
    /// Returns the faults of the settings that show without opening the files that they name.
    pub fn check(&self) -> Vec<PeerError> {
        let budget = self.bounds().engine().check_budget();
        let budget = budget.err().map(PeerError::engine(ROLE));
        let model = self.model.check().err();
        let model = model.map(|error| PeerError::setting(ROLE, "model", error));
        let remote = self.remote.check().err();
        let remote = remote.map(|error| PeerError::setting(ROLE, "remote", error));
        budget.into_iter().chain(model).chain(remote).collect()
    }

    /// Returns the fault of the files that its engine elsewhere needs, if there is one.
    pub fn check_files(&self) -> Option<PeerError> {
        let connection = self.remote.is_set().then(|| self.remote.connection())?;
        let error = connection.err()?;
        Some(PeerError::setting(ROLE, "remote", error))
    }

    /// Returns the bounds that it sets.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            max_draft_tokens: self.max_draft_tokens,
            max_sessions: self.max_sessions,
            engine: self.engine,
            server: self.server.clone(),
        }
    }
}

impl Default for VerifierConfig {
    fn default() -> Self {
        let default_address = std::net::SocketAddr::from(([127, 0, 0, 1], 7201));
        Self {
            listen: default_address.into(),
            model: ModelSource::embedded("target"),
            remote: RemoteConfig::default(),
            max_draft_tokens: const { NonZeroU32::new(64).unwrap() },
            max_sessions: const { NonZeroUsize::new(1_024).unwrap() },
            engine: EngineConfig::default(),
            server: ServerConfig::default(),
        }
    }
}
