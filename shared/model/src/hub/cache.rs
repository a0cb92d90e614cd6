//! The cache on disk, in the layout of the Python library, which shares it: blobs by hash, snapshots by
//! commit that link to them, and refs from branches to commits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hf_hub::{Cache, Repo, RepoType};

use super::contents::{self, Layout};
use super::{HubError, Snapshot, SnapshotFile};
use crate::source::HubReference;

/// A file of the cache, by the hash of its bytes.
pub(super) struct Blob {
    /// Where it is when it is complete.
    pub(super) path: PathBuf,
    /// Where it is before.
    pub(super) incomplete: PathBuf,
}

/// A repository in the cache, at one revision.
pub(super) struct CachedRepo {
    root: PathBuf,
    repo: Repo,
    wanted: HubReference,
}

impl CachedRepo {
    pub(super) fn new(root: &Path, wanted: &HubReference) -> Self {
        let (repo, revision) = (wanted.repo.clone(), wanted.revision.clone());
        Self {
            root: root.to_owned(),
            repo: Repo::with_revision(repo, RepoType::Model, revision),
            wanted: wanted.clone(),
        }
    }

    fn cached(&self) -> hf_hub::CacheRepo {
        Cache::new(self.root.clone()).repo(self.repo.clone())
    }

    pub(super) fn blob(&self, etag: &str) -> Blob {
        let path = self.cached().blob_path(etag);
        let incomplete = path.with_file_name(format!("{etag}.incomplete"));
        Blob { path, incomplete }
    }

    /// The folder of a commit.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.cached().pointer_path(commit)
    }

    /// Waits until nobody else fills the blob `etag`; the file returned is the lock. The Python library
    /// takes the same.
    pub(super) fn lock(&self, etag: &str) -> Result<File, HubError> {
        let folder = self.root.join(".locks").join(self.repo.folder_name());
        let path = folder.join(format!("{etag}.lock"));
        fs::create_dir_all(&folder).map_err(HubError::io(&folder))?;
        let file = File::create(&path).map_err(HubError::io(&path))?;
        file.lock().map_err(HubError::io(&path))?;
        Ok(file)
    }

    /// Links `file` of `commit` to the blob `etag`.
    pub(super) fn link(&self, commit: &str, file: &str, etag: &str) -> Result<(), HubError> {
        let link = self.snapshot(commit).join(file);
        let folder = link.parent().unwrap_or(&link);
        fs::create_dir_all(folder).map_err(HubError::io(folder))?;
        // A link that leads nowhere is in the way.
        if link.is_symlink() && !link.exists() {
            fs::remove_file(&link).map_err(HubError::io(&link))?;
        }
        // From the file's folder up to that of the commit, then past `snapshots`.
        let up = "../".repeat(file.matches('/').count() + 2);
        let made = place(
            &self.blob(etag).path,
            Path::new(&format!("{up}blobs/{etag}")),
            &link,
        );
        match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(HubError::io(&link)(error))
            }
            _ => Ok(()),
        }
    }

    /// Notes that the revision is `commit`.
    pub(super) fn note(&self, commit: &str) -> Result<(), HubError> {
        if self.wanted.revision == commit {
            return Ok(());
        }
        let noted = self.cached().create_ref(commit);
        noted.map_err(HubError::io(&self.root.join(self.repo.folder_name())))
    }

    /// What is here of the revision, if it is all that is needed.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn complete(&self) -> Result<Snapshot, String> {
        let folder = self.root.join(self.repo.folder_name());
        let revision = &self.wanted.revision;
        let noted = fs::read_to_string(folder.join("refs").join(revision));
        let commit = match noted {
            Ok(commit) => commit.trim().to_owned(),
            Err(_) => revision.clone(),
        };
        if !is_commit(&commit) {
            return Err(format!("revision {revision} was never downloaded"));
        }
        let snapshot = self.snapshot(&commit);
        let names = match files_below(&snapshot) {
            names if names.is_empty() => {
                return Err(format!("revision {revision} was never downloaded"));
            }
            names => names,
        };
        let needed = match &self.wanted.file {
            Some(file) => vec![file.clone()],
            None => needed(&snapshot, &names, &self.wanted.repo)?,
        };
        for file in &needed {
            if !names.contains(file) {
                return Err(format!("{file} is missing"));
            }
        }
        let of_snapshot = |name: String| file(&snapshot, name, false);
        let path = match &self.wanted.file {
            Some(file) => snapshot.join(file),
            None => snapshot.clone(),
        };
        Ok(Snapshot {
            repo: self.wanted.repo.clone(),
            commit,
            path,
            files: needed.into_iter().map(of_snapshot).collect(),
        })
    }
}

/// The files of a checkpoint among `names`, in the folder `snapshot`.
fn needed(snapshot: &Path, names: &BTreeSet<String>, repo: &str) -> Result<Vec<String>, String> {
    let mut needed = contents::small_files(names);
    if !names.contains(contents::CONFIG) {
        return Err(format!("{} is missing", contents::CONFIG));
    }
    match contents::layout(names) {
        None => return Err("its weights are missing".to_owned()),
        Some(Layout::Single) => needed.push(contents::SINGLE.to_owned()),
        Some(Layout::Sharded) => {
            let index = snapshot.join(contents::INDEX);
            needed.push(contents::INDEX.to_owned());
            needed.extend(contents::shards(&index, repo).map_err(|error| error.to_string())?);
        }
    }
    Ok(needed)
}

/// What is known of a file in the folder of a commit.
pub(super) fn file(snapshot: &Path, name: String, downloaded: bool) -> SnapshotFile {
    let path = snapshot.join(&name);
    let blob = fs::read_link(&path).ok();
    let hash = blob.and_then(|blob| Some(blob.file_name()?.to_str()?.to_owned()));
    SnapshotFile {
        size: fs::metadata(&path).map_or(0, |metadata| metadata.len()),
        hash: hash.unwrap_or_default(),
        name,
        downloaded,
    }
}

/// Whether a revision is a commit's whole hash, and so a plain name.
pub(super) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(unix)]
fn place(_blob: &Path, relative: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(relative, link)
}

#[cfg(not(unix))]
fn place(blob: &Path, _relative: &Path, link: &Path) -> std::io::Result<()> {
    fs::hard_link(blob, link)
}

/// The files below `folder` that can be read, by their names from there.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let (path, name) = (entry.path(), format!("{prefix}{name}"));
            if path.is_dir() {
                folders.push((path, format!("{name}/")));
            } else if path.is_file() {
                names.insert(name);
            }
        }
    }
    names
}

/// Every snapshot in the cache at `root`, by repository, with the revisions that lead to it.
pub(super) fn snapshots(root: &Path) -> Vec<(Snapshot, Vec<String>)> {
    let mut found = Vec::new();
    let folders: BTreeMap<String, PathBuf> = subfolders(root).collect();
    for (name, folder) in folders {
        let Some(repo) = name.strip_prefix("models--") else {
            continue;
        };
        let repo = repo.replacen("--", "/", 1);
        let refs = folder.join("refs");
        let commit_of = |name: &String| fs::read_to_string(refs.join(name)).unwrap_or_default();
        let refs: Vec<(String, String)> = files_below(&refs)
            .into_iter()
            .map(|name| (commit_of(&name).trim().to_owned(), name))
            .collect();
        let commits: BTreeMap<String, PathBuf> = subfolders(&folder.join("snapshots")).collect();
        for (commit, path) in commits {
            let files: Vec<SnapshotFile> = files_below(&path)
                .into_iter()
                .map(|name| file(&path, name, false))
                .collect();
            if files.is_empty() {
                continue;
            }
            let leading = refs.iter().filter(|(to, _)| *to == commit);
            let revisions = leading.map(|(_, name)| name.clone()).collect();
            let repo = repo.clone();
            let snapshot = Snapshot {
                repo,
                commit,
                path,
                files,
            };
            found.push((snapshot, revisions));
        }
    }
    found
}

fn subfolders(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        entry.path().is_dir().then(|| (name, entry.path()))
    })
}
