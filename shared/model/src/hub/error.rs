//! What can go wrong between here and the hub.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::http::server;

/// Why a model cannot be had from the hub.
#[derive(Debug, Error)]
pub enum HubError {
    /// An environment variable, or the file with the token, cannot be used.
    #[error("{name} {problem}")]
    Setting {
        /// The variable or the file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The hub did not answer.
    #[error(
        "the hub at {endpoint} cannot be reached ({reason}): check the network or HF_ENDPOINT, set \
         HF_HUB_OFFLINE=1 to use what is cached, or name a local folder"
    )]
    Unreachable {
        /// Address of the hub, or of the server it sent us to.
        endpoint: String,
        /// What happened.
        reason: String,
    },
    /// Its certificate is not believed.
    #[error(
        "the hub at {endpoint} shows a certificate that is not believed ({reason}): if its CA is your own, name a PEM \
         file with it in SSL_CERT_FILE or REQUESTS_CA_BUNDLE"
    )]
    NotBelieved {
        /// Address of the hub, or of the server it sent us to.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The hub answered what cannot be used.
    #[error("{url}: {problem}")]
    Answer {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        problem: String,
    },
    /// 401 or 403.
    #[error("{what}: the hub at {endpoint} refuses access ({status}{said}): {}", advice(*status, token_origin.as_deref()))]
    Denied {
        /// Repository or file.
        what: String,
        /// Address of the hub.
        endpoint: String,
        /// HTTP status.
        status: u16,
        /// What the hub said, in brackets' form `, TEXT`, or nothing.
        said: String,
        /// Where the token that was sent came from, if one was.
        token_origin: Option<String>,
    },
    /// The hub sends us to another server, and not for the bytes of a file.
    #[error(
        "{url} leads to {server}, which is another server than the hub's: set HF_ENDPOINT={server} if that is \
         the hub you mean; an access token goes to no other"
    )]
    Elsewhere {
        /// What was asked for.
        url: String,
        /// Where it is said to be.
        server: String,
    },
    /// 404 for the repository.
    #[error("the hub at {endpoint} has no model {repo}; private models need a token in HF_TOKEN")]
    NoRepository {
        /// Its name.
        repo: String,
        /// Address of the hub.
        endpoint: String,
    },
    /// 404 for the revision.
    #[error("{repo} has no revision {revision} at {endpoint}")]
    NoRevision {
        /// The repository.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// Address of the hub.
        endpoint: String,
    },
    /// The repository lacks a file.
    #[error("{repo}@{revision} has no file {file}{hint}")]
    NoFile {
        /// The repository.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// The file.
        file: String,
        /// What it has instead, as `: TEXT`, or nothing.
        hint: String,
    },
    /// A name that would leave the cache.
    #[error("{origin} names {name:?}, which {problem}: refused")]
    UnsafeName {
        /// Who gives the name.
        origin: String,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The bytes are not those announced.
    #[error("{file}: {problem}: the file was removed, try again")]
    WrongHash {
        /// The file.
        file: String,
        /// Hash of what came, and the hub's.
        problem: String,
    },
    /// A file of the cache has other bytes than it should have, and cannot be had again now.
    #[error(
        "{}: {problem}: the file is damaged, and {why}; run `outrider models pull \
         {model}` where there is a network, which downloads it again", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Hash of what is there, and the hub's.
        problem: String,
        /// Why it cannot be downloaded now.
        why: &'static str,
        /// The model.
        model: String,
    },
    /// The connection broke, again and again.
    #[error(
        "{file}: the connection broke after {got} of {size} bytes ({reason}): run it again, and it goes \
         on from there"
    )]
    Interrupted {
        /// The file.
        file: String,
        /// Bytes that are here.
        got: u64,
        /// Bytes of the whole.
        size: u64,
        /// What happened.
        reason: String,
    },
    /// The disk is full.
    #[error(
        "{}: no space left for {file} ({size} bytes): free some, or set HF_HUB_CACHE to another disk; \
         what had come of it was removed", folder.display()
    )]
    NoSpace {
        /// The file.
        file: String,
        /// Its size.
        size: u64,
        /// Folder of the cache.
        folder: PathBuf,
    },
    /// A file of the cache cannot be read or written.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Offline, and not in the cache.
    #[error(
        "{model} is not in the cache at {}, and HF_HUB_OFFLINE is set: {problem}; unset it once, or run \
         `outrider models pull {model}` where there is a network", cache.display()
    )]
    NotCached {
        /// The model.
        model: String,
        /// Folder of the cache.
        cache: PathBuf,
        /// What is missing.
        problem: String,
    },
}

/// Says what to do about a refusal. A token that is known but may not see the model gets a 403; a 401 is for one that
/// is not known.
fn advice(status: u16, token_origin: Option<&str>) -> String {
    match token_origin {
        None => "it is private, gated or does not exist; give a token in HF_TOKEN, or log in with `hf auth \
                 login`"
            .to_owned(),
        Some(origin) if status == 401 => format!(
            "the token from {origin} is not valid there: it is mistyped, revoked, expired or another hub's; \
             give another in HF_TOKEN, log in again with `hf auth login`, or leave it out for what is public"
        ),
        Some(origin) => format!(
            "the token from {origin} has no access to it; accept the model's licence on its page, or give \
             another token in HF_TOKEN"
        ),
    }
}

impl HubError {
    pub(super) fn setting(name: impl Into<String>, problem: impl Into<String>) -> Self {
        let (name, problem) = (name.into(), problem.into());
        Self::Setting { name, problem }
    }

    /// `url` leads to the address `location` on another server.
    pub(super) fn elsewhere(url: &str, location: &str) -> Self {
        Self::Elsewhere {
            url: url.to_owned(),
            server: server(location).unwrap_or_else(|| location.to_owned()),
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(super) fn answer(url: &str, problem: impl Into<String>) -> Self {
        let (url, problem) = (url.to_owned(), problem.into());
        Self::Answer { url, problem }
    }
}
