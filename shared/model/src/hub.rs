//! Models from the hub, through its cache.
//!
//! Names, cache layout and the form of the hub's answers are those of the hf-hub crate, and so of the
//! Python library: both share one cache. Requests are made here: the client of hf-hub 0.5 sends the access
//! token to whatever host a file is kept at, goes on only at multiples of 10 MB or without looking whether
//! the server did so, and checks no hash.

mod cache;
mod contents;
mod error;
mod http;
mod integrity;
mod settings;
mod transfer;
mod trust;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use hf_hub::api::RepoInfo;
use hf_hub::{Repo, RepoType};
use ureq::http::StatusCode;

use crate::gguf::part_name;
use crate::progress::{ProgressLines, ProgressObserver, WorkKind, WorkProgress};
use crate::reference::{HubReference, check_path};
use cache::CachedRepo;
use http::{Ask, Http, redirect, text};
use integrity::is_sha1;

pub use cache::CachedModel;
pub use error::HubError;
pub use settings::{HubSettings, HubToken};
pub use trust::CaFile;

/// Longest list of a repository's files, in bytes.
const MAX_INFO_BYTES: u64 = 64 << 20;

/// A hub, and the cache of what came from it.
pub struct Hub {
    http: Http,
    settings: HubSettings,
    observer: Arc<dyn ProgressObserver>,
}

/// A model in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// `org/name`.
    pub repo: String,
    /// The commit.
    pub commit: String,
    /// The checkpoint's folder, or the GGUF file, the first of several.
    pub path: PathBuf,
    /// Its files.
    pub files: Vec<SnapshotFile>,
}

/// A file of a model in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its name in the repository.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The hash the hub knows it by: a SHA-256 for large files, git's for small ones; empty if unknown.
    pub hash: String,
    /// Whether it was downloaded just now.
    pub downloaded: bool,
}

impl SnapshotFile {
    /// The hash with its kind.
    pub fn labelled_hash(&self) -> String {
        match self.hash.as_str() {
            "" => "hash unknown".to_owned(),
            hash if integrity::is_sha256(hash) => format!("sha256:{hash}"),
            hash => format!("git:{hash}"),
        }
    }
}

/// What is to be thought of files that are here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Present {
    /// They are what they were when they came.
    Trusted,
    /// Their bytes are compared with their hashes.
    Checked,
}

impl Hub {
    /// The hub that the environment names.
    ///
    /// # Errors
    /// If a variable cannot be used.
    pub fn from_env() -> Result<Self, HubError> {
        Self::new(HubSettings::from_env()?)
    }

    /// The hub of these settings.
    ///
    /// # Errors
    /// If the CAs that they name cannot be read.
    pub fn new(settings: HubSettings) -> Result<Self, HubError> {
        let http = Http::new(&settings)?;
        Ok(Self {
            http,
            settings,
            observer: Arc::new(ProgressLines::default()),
        })
    }

    /// The same hub, where `observer` is told how far downloads are and what came, and not standard error.
    #[must_use]
    pub fn observed(self, observer: Arc<dyn ProgressObserver>) -> Self {
        Self { observer, ..self }
    }

    /// Every model in the cache, whole or not.
    pub fn cached(&self) -> Vec<CachedModel> {
        cache::models(&self.settings.cache)
    }

    /// Brings what is missing of a model into the cache. Tells its observer how far it is, and what it
    /// downloaded; without one, standard error.
    ///
    /// # Errors
    /// [`HubError`], saying what to do. What was received before stays in the cache, and is gone on from,
    /// but for files that proved wrong or filled the disk.
    pub fn fetch(&self, wanted: &HubReference) -> Result<Snapshot, HubError> {
        self.bring(wanted, Present::Trusted)
    }

    /// The same, and reads every file that is here already: those that are damaged are downloaded again.
    ///
    /// # Errors
    /// As [`Hub::fetch`]; and [`HubError::Damaged`] if the hub must not or cannot be asked.
    pub fn pull(&self, wanted: &HubReference) -> Result<Snapshot, HubError> {
        self.bring(wanted, Present::Checked)
    }

    /// Returns what of a model is in the cache, if it is all that is needed; none if it would be downloaded. Asks
    /// nobody.
    ///
    /// # Errors
    /// [`HubError::NotCached`] if the hub must not be asked.
    pub fn held(&self, wanted: &HubReference) -> Result<Option<Snapshot>, HubError> {
        match CachedRepo::new(&self.settings.cache, wanted).complete() {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(problem) if self.settings.offline => Err(self.not_cached(wanted, problem)),
            Err(_) => Ok(None),
        }
    }

    fn not_cached(&self, wanted: &HubReference, problem: String) -> HubError {
        HubError::NotCached {
            model: wanted.to_string(),
            cache: self.settings.cache.clone(),
            problem,
        }
    }

    fn bring(&self, wanted: &HubReference, present: Present) -> Result<Snapshot, HubError> {
        let cached = CachedRepo::new(&self.settings.cache, wanted);
        let complete = cached.complete();
        // What is here, if it may be used as it is; `why` it cannot be downloaded now.
        let as_it_is = |snapshot: Snapshot, why| match present {
            Present::Trusted => Ok(snapshot),
            Present::Checked => cache::whole(snapshot, wanted, why),
        };
        if self.settings.offline {
            let complete = complete.map_err(|problem| self.not_cached(wanted, problem));
            return as_it_is(complete?, "HF_HUB_OFFLINE is set");
        }
        // A commit never changes: nothing need be asked.
        if is_sha1(&wanted.revision)
            && present == Present::Trusted
            && let Ok(complete) = complete
        {
            return Ok(complete);
        }
        let info = match (self.info(wanted), complete) {
            (
                Err(error @ (HubError::Unreachable { .. } | HubError::NotBelieved { .. })),
                Ok(complete),
            ) => {
                tracing::warn!(model = %wanted, %error, "taken from the cache");
                return as_it_is(complete, "the hub cannot be reached");
            }
            (info, _) => info?,
        };
        let snapshot = self.download(wanted, &cached, &info, present)?;
        cached.note(&snapshot.commit)?;
        self.list(&snapshot);
        Ok(snapshot)
    }

    /// Asks what the repository holds at the revision.
    fn info(&self, wanted: &HubReference) -> Result<RepoInfo, HubError> {
        let (repo, revision) = (wanted.repo.clone(), wanted.revision.clone());
        let requested = Repo::with_revision(repo.clone(), RepoType::Model, revision);
        let endpoint = self.http.endpoint.clone();
        let url = format!("{endpoint}/api/{}", requested.api_url());
        let response = self.http.ask(&url, Ask::GetFrom(0))?;
        let no_revision = text(response.headers(), "x-error-code") == Some("RevisionNotFound");
        let missing = || {
            if no_revision {
                let revision = wanted.revision.clone();
                return HubError::NoRevision {
                    repo,
                    revision,
                    endpoint,
                };
            }
            HubError::NoRepository { repo, endpoint }
        };
        self.http.check(&wanted.repo, &url, &response, missing)?;
        if let Some(location) = redirect(&url, &response)? {
            return Err(HubError::elsewhere(&url, &location));
        }
        if response.status() != StatusCode::OK {
            let problem = format!("the answer is {}", response.status());
            return Err(HubError::answer(&url, problem));
        }
        let body = response.into_body().into_with_config();
        let json = body
            .limit(MAX_INFO_BYTES)
            .read_to_vec()
            .map_err(|error| HubError::answer(&url, error.to_string()))?;
        let info: RepoInfo = serde_json::from_slice(&json)
            .map_err(|error| HubError::answer(&url, format!("no model's description: {error}")))?;
        if !is_sha1(&info.sha) {
            let problem = format!("{:?} is no commit", info.sha);
            return Err(HubError::answer(&url, problem));
        }
        Ok(info)
    }

    /// Downloads what is needed and not here, the weights last: where they are, the rest is.
    fn download(
        &self,
        wanted: &HubReference,
        cached: &CachedRepo,
        info: &RepoInfo,
        present: Present,
    ) -> Result<Snapshot, HubError> {
        let names = info.siblings.iter().map(|file| file.rfilename.clone());
        let names: BTreeSet<String> = names.collect();
        let folder = cached.snapshot(&info.sha);
        let get = |name: &str| self.file(wanted, cached, &info.sha, name, present);
        let lacks = |file: &str| HubError::NoFile {
            repo: wanted.repo.clone(),
            revision: wanted.revision.clone(),
            file: file.to_owned(),
            hint: contents::instead(&names),
        };
        let mut files = Vec::new();
        let path = if let Some(file) = &wanted.file {
            let parts = part_name::files(file);
            if let Some(lacking) = parts.iter().find(|part| !names.contains(*part)) {
                return Err(lacks(lacking));
            }
            for part in &parts {
                files.push(get(part)?);
            }
            part_name::first(folder.join(file))
        } else {
            if !names.contains(contents::CONFIG) {
                return Err(lacks(contents::CONFIG));
            }
            let weights = contents::weights(&names).ok_or_else(|| lacks(contents::SINGLE))?;
            for name in &contents::small_files(&names) {
                files.push(get(name)?);
            }
            files.push(get(weights)?);
            if weights == contents::INDEX {
                for shard in contents::shards(&folder.join(weights), &wanted.repo)? {
                    if !names.contains(&shard) {
                        return Err(lacks(&shard));
                    }
                    files.push(get(&shard)?);
                }
            }
            folder.clone()
        };
        Ok(Snapshot {
            repo: wanted.repo.clone(),
            commit: info.sha.clone(),
            path,
            files,
        })
    }

    /// Brings one file into the cache, unless it is there, and whole if that is `present`.
    fn file(
        &self,
        wanted: &HubReference,
        cached: &CachedRepo,
        commit: &str,
        name: &str,
        present: Present,
    ) -> Result<SnapshotFile, HubError> {
        let folder = cached.snapshot(commit);
        check_path(name).map_err(|problem| HubError::UnsafeName {
            origin: wanted.repo.clone(),
            name: name.to_owned(),
            problem,
        })?;
        let place = folder.join(name);
        if place.is_file() {
            let held = cache::file(&folder, name.to_owned(), false);
            let damage = match present {
                Present::Trusted => None,
                Present::Checked => {
                    integrity::damage(&place, &held.hash).map_err(HubError::io(&place))?
                }
            };
            let Some(problem) = damage else {
                return Ok(held);
            };
            let note = format!("{name}: {problem}: damaged, it is downloaded again");
            self.observer.note(&note);
        }
        let (endpoint, repo) = (&self.http.endpoint, &wanted.repo);
        let url = format!("{endpoint}/{repo}/resolve/{commit}/{name}");
        let what = format!("{repo}/{name}");
        let missing = || HubError::NoFile {
            repo: repo.clone(),
            revision: commit.to_owned(),
            file: name.to_owned(),
            hint: String::new(),
        };
        let metadata = transfer::metadata(&self.http, &url, &what, missing)?;
        let blob = cached.blob(&metadata.etag);
        let blobs = blob.path.parent().unwrap_or(&blob.path);
        std::fs::create_dir_all(blobs).map_err(HubError::io(blobs))?;
        let etag = metadata.etag.clone();
        let lock = cached.lock(&etag)?;
        if present == Present::Checked {
            cached.remove_damaged(commit, name, &blob)?;
        }
        let downloaded = !blob.path.exists();
        if downloaded {
            let total_bytes = metadata.size;
            let at = |done_bytes| {
                self.observer.progress(WorkProgress {
                    work: WorkKind::Downloading,
                    name: &what,
                    done_bytes,
                    total_bytes,
                });
            };
            transfer::download(&self.http, &url, name, metadata, &blob, &at)?;
        }
        cached.link(commit, name, &etag)?;
        drop(lock);
        Ok(cache::file(&folder, name.to_owned(), downloaded))
    }

    /// Tells what was downloaded, if anything was.
    fn list(&self, snapshot: &Snapshot) {
        let downloaded = snapshot.files.iter().filter(|file| file.downloaded);
        for (index, file) in downloaded.enumerate() {
            if index == 0 {
                let (repo, commit) = (&snapshot.repo, &snapshot.commit);
                self.observer.note(&format!("{repo} at commit {commit}:"));
            }
            let (name, size, hash) = (&file.name, file.size, file.labelled_hash());
            self.observer
                .note(&format!("  {name}  {size} bytes  {hash}"));
        }
    }
}
