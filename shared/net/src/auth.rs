//! Bearer tokens: of clients, and between services.
//!
//! A service asks for a token in the metadata of every call, `authorization: Bearer TOKEN`, on all routes
//! of its port: reflection and health too. Tokens are in files, so that they stand neither in a
//! configuration nor in a list of processes, and files are read again when they change.

mod file;
mod guard;
mod guesses;
mod quota;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::reload::{FileError, Reloaded, Reloads};
use file::TokenFile;
pub use file::{MAX_TOKEN_CHARS, MIN_TOKEN_CHARS};
pub use guard::{AuthRefusal, Guard, RateLimits, TokenHolder, guard_calls};
use guesses::Guesses;
pub use guesses::{MAX_PAUSE, MAX_PUT_OFF};
pub use quota::{Exceeded, Quota, TokenQuotas};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// Where tokens are, as a section of a process's configuration.
///
/// A file holds one token a line; empty lines and those that begin with `#` are passed over. All of a
/// file's tokens are accepted, and the first is shown, so that a token can be replaced step by step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Tokens that clients must show to a coordinator. A name may stand before a token; it is the tenant
    /// of those who show it, whatever they say. Limits may stand after it: `requests=N`, most requests under way
    /// that show it; `rpm=N` and `tpm=N`, most requests, and tokens of prompts and outputs, in a minute. Without the
    /// file everyone is let in.
    pub client_tokens_file: PathBuf,
    /// Tokens that a drafter and a verifier demand; a coordinator shows the first. Without the file
    /// everyone is let in.
    pub peer_token_file: PathBuf,
    /// The token that this process shows where it is a client of a coordinator.
    pub token_file: PathBuf,
    /// How often the files are looked at for changes; 0 is never, but on SIGHUP.
    #[default(30)]
    pub reload_seconds: u64,
}

/// The tokens a process asks for, and the one it shows. Clones share them; the default asks for none
/// and shows none.
#[derive(Clone, Debug, Default)]
pub struct Auth {
    requested: Option<ReloadedTokens>,
    shown: Option<ReloadedTokens>,
    /// Wrong tokens that were shown on any port.
    guesses: Arc<Guesses>,
    /// Whether a token may be shown where others can read it on its way.
    in_clear: bool,
}

/// The tokens of one file, as it is now.
type ReloadedTokens = Arc<Reloaded<TokenFile>>;

impl Auth {
    /// Of a coordinator: it asks its clients, and shows its peers who it is.
    ///
    /// # Errors
    /// [`FileError`] naming the setting, the file and the line.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn of_coordinator(config: &AuthConfig) -> Result<Self, FileError> {
        Ok(Self {
            requested: config.tokens("client_tokens_file", &config.client_tokens_file)?,
            shown: config.tokens("peer_token_file", &config.peer_token_file)?,
            ..Self::default()
        })
    }

    /// Of a drafter or a verifier, and of whoever talks to them: what it asks for is what it shows.
    ///
    /// # Errors
    /// As [`Self::of_coordinator`].
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn of_peer(config: &AuthConfig) -> Result<Self, FileError> {
        let tokens = config.tokens("peer_token_file", &config.peer_token_file)?;
        Ok(Self {
            requested: tokens.clone(),
            shown: tokens,
            ..Self::default()
        })
    }

    /// Of a client of a coordinator.
    ///
    /// # Errors
    /// As [`Self::of_coordinator`].
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn of_client(config: &AuthConfig) -> Result<Self, FileError> {
        Ok(Self {
            shown: config.tokens("token_file", &config.token_file)?,
            ..Self::default()
        })
    }

    /// Returns the same; `allowed` tells whether tokens may be shown over connections in clear to other machines.
    #[must_use]
    pub fn in_clear(mut self, allowed: bool) -> Self {
        self.in_clear = allowed;
        self
    }

    /// Returns whether a token would be shown that must not cross a network in clear.
    pub(crate) fn must_be_hidden(&self) -> bool {
        self.shown.is_some() && !self.in_clear
    }

    /// Has `reloads` read its files again when told to.
    pub fn add_to(&self, reloads: &Reloads) {
        for tokens in self.requested.iter().chain(&self.shown) {
            reloads.add(tokens);
        }
    }

    /// Returns the guard of the requests that come in.
    pub fn guard(&self) -> Guard {
        Guard {
            requested: self.requested.clone(),
            refused: Arc::default(),
            guesses: Arc::clone(&self.guesses),
        }
    }

    /// Returns what goes with every request that goes out.
    pub(crate) fn shown(&self) -> Shown {
        Shown(self.shown.clone())
    }
}

impl AuthConfig {
    /// Returns what [`Auth::of_coordinator`] would refuse.
    pub fn check_coordinator(&self) -> Vec<FileError> {
        let clients = unusable("client_tokens_file", &self.client_tokens_file);
        clients.into_iter().chain(self.check_peer()).collect()
    }

    /// Returns what [`Auth::of_peer`] would refuse.
    pub fn check_peer(&self) -> Vec<FileError> {
        let peers = unusable("peer_token_file", &self.peer_token_file);
        peers.into_iter().collect()
    }

    /// Returns the tokens of `file`; none if no file is named.
    fn tokens(
        &self,
        setting: &'static str,
        file: &Path,
    ) -> Result<Option<ReloadedTokens>, FileError> {
        if file.as_os_str().is_empty() {
            return Ok(None);
        }
        let (path, interval) = (file.to_owned(), Duration::from_secs(self.reload_seconds));
        let read = move || TokenFile::read(setting, &path);
        Reloaded::start("tokens", vec![file.to_owned()], interval, read).map(Some)
    }
}

/// Returns what is wrong with the `file` of tokens that `setting` names, if it names one.
fn unusable(setting: &'static str, file: &Path) -> Option<FileError> {
    if file.as_os_str().is_empty() {
        return None;
    }
    TokenFile::read(setting, file).err()
}

/// The header a token comes in.
const HEADER: &str = "authorization";

/// Adds the process's token, as it is now, to what is sent.
#[derive(Clone, Debug, Default)]
pub struct Shown(Option<ReloadedTokens>);

impl Interceptor for Shown {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = self.0.as_ref().and_then(|tokens| tokens.get().header()) {
            request.metadata_mut().insert(HEADER, header);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
