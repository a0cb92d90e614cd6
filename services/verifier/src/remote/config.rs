//! Where an engine is that computes the target model.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use engines::{Connection, ConnectionSettings, EngineError, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section `verifier.remote`: an engine that computes the target model elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteConfig {
    /// What it is: `sglang` or `vllm`.
    pub engine: Kind,
    /// Where it is, http:// or https://; empty if this process computes the model itself. `verifier.model.path` is then
    /// a folder with the model's config.json and tokenizer.json, and no weights.
    pub url: String,
    /// PEM certificates, one of which signed the engine's; empty takes those of the public web.
    pub ca_file: PathBuf,
    /// A file with the key that is sent as `Authorization: Bearer`; empty sends none.
    pub key_file: PathBuf,
    /// Requests under way at a time. Rounds that wait meanwhile go into one request, where the engine takes several.
    pub requests: NonZeroUsize,
    /// Whether requests with a tenant are served by an engine whose prefix cache does not separate tenants. The time of an
    /// answer may then reveal whether another tenant sent the same prompt.
    pub share_tenants: bool,
}

impl RemoteConfig {
    /// Whether there is one.
    pub(crate) fn is_set(&self) -> bool {
        !self.url.is_empty()
    }

    /// A connection, to nowhere yet.
    ///
    /// # Errors
    /// Names the setting at fault.
    pub(crate) fn connection(&self) -> Result<Connection, EngineError> {
        Connection::new(&self.settings())
    }

    /// Checks what can be told without the files that it names.
    ///
    /// # Errors
    /// Names the setting at fault.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if self.is_set() {
            return self.settings().check_url();
        }
        Ok(())
    }

    /// Whether the key would go to another machine in clear.
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

impl Default for RemoteConfig {
    fn default() -> Self {
        Self {
            engine: Kind::default(),
            url: String::new(),
            ca_file: PathBuf::new(),
            key_file: PathBuf::new(),
            requests: const { NonZeroUsize::new(4).unwrap() },
            share_tenants: false,
        }
    }
}
