//! Configuration of a verifier.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use engines::{ConnectionSettings, EngineConnection, RemoteEngine, ScoringError};
use model::engine::EngineConfig;
use model::source::ModelSource;
use net::listen::{Listen, ServerConfig};
use ops::service_error::ServiceError;
use peer::Bounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// Its section of the configuration, and what it is called in metrics and traces.
pub(crate) const ROLE: &str = "verifier";

/// Section `verifier` of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct VerifierConfig {
    /// Address to listen on.
    #[default(SocketAddr::from(([127, 0, 0, 1], 7201)).into())]
    pub listen: Listen,
    /// The target model.
    #[default(ModelSource::embedded("target"))]
    pub model: ModelSource,
    /// An engine elsewhere that computes it, SGLang or vLLM.
    pub remote: RemoteConfig,
    /// Most draft tokens in one round.
    #[default(const { NonZeroU32::new(64).unwrap() })]
    pub max_draft_tokens: NonZeroU32,
    /// Most sessions, with an open stream or waiting for their next one.
    #[default(const { NonZeroUsize::new(1_024).unwrap() })]
    pub max_sessions: NonZeroUsize,
    /// Bounds of the engine.
    pub engine: EngineConfig,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
}

impl VerifierConfig {
    /// Returns the faults of the settings that show without opening the files that they name.
    pub fn check(&self) -> Vec<ServiceError> {
        let budget = self.bounds().engine().check_budget();
        let budget = budget.err().map(ServiceError::engine(ROLE));
        let model = self.model.check().err();
        let model = model.map(|error| ServiceError::setting(ROLE, "model", error));
        let remote = self.remote.check().err();
        let remote = remote.map(|error| ServiceError::setting(ROLE, "remote", error));
        budget.into_iter().chain(model).chain(remote).collect()
    }

    /// Returns the fault of the files that its engine elsewhere needs, if there is one.
    pub fn check_files(&self) -> Option<ServiceError> {
        let connection = self.remote.is_set().then(|| self.remote.connection())?;
        let error = connection.err()?;
        Some(ServiceError::setting(ROLE, "remote", error))
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

/// Section `verifier.remote`: an engine that computes the target model elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteConfig {
    /// What it is: `sglang` or `vllm`.
    pub engine: RemoteEngine,
    /// Where it is, http:// or https://; empty if this process computes the model itself. `verifier.model.path` is then
    /// a folder with the model's config.json and tokenizer.json, and no weights.
    pub url: String,
    /// PEM certificates, one of which signed the engine's; empty takes those of the public web.
    pub ca_file: PathBuf,
    /// A file with the key that is sent as `Authorization: Bearer`; empty sends none.
    pub key_file: PathBuf,
    /// Requests under way at a time. Rounds that wait meanwhile go into one request, where the engine takes several.
    #[default(const { NonZeroUsize::new(4).unwrap() })]
    pub requests: NonZeroUsize,
    /// Whether requests with a tenant are served by an engine whose prefix cache does not separate tenants. The time of an
    /// answer may then reveal whether another tenant sent the same prompt.
    pub share_tenants: bool,
}

impl RemoteConfig {
    /// Returns whether there is one.
    pub(crate) fn is_set(&self) -> bool {
        !self.url.is_empty()
    }

    /// Returns a client that has not connected yet.
    ///
    /// # Errors
    /// Names the setting at fault.
    pub(crate) fn connection(&self) -> Result<EngineConnection, ScoringError> {
        EngineConnection::new(&self.settings())
    }

    /// Checks what can be told without the files that it names.
    ///
    /// # Errors
    /// Names the setting at fault.
    pub(crate) fn check(&self) -> Result<(), ScoringError> {
        if self.is_set() {
            self.settings().checked_url()?;
        }
        Ok(())
    }

    /// Returns whether the key would go to another machine unencrypted.
    pub fn shows_key(&self) -> bool {
        self.settings().shows_key()
    }

    fn settings(&self) -> ConnectionSettings {
        let file = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        ConnectionSettings {
            url: self.url.clone(),
            ca_file: file(&self.ca_file),
            key_file: file(&self.key_file),
        }
    }
}
