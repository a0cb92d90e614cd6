//! The cache on disk, in the layout of the Python library, which shares it: blobs by hash, snapshots by
//! commit that link to them, and refs from branches to commits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hf_hub::{Cache, CacheRepo, Repo, RepoType};

use super::{HubError, Snapshot, SnapshotFile, contents, integrity};
use crate::gguf::part_name;
use crate::reference::{HubReference, has_ending};

/// A model in the cache, at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedModel {
    /// What is here of it. Its commit is empty where not one file is whole yet.
    pub snapshot: Snapshot,
    /// Branches and tags by which it was asked for.
    pub revisions: Vec<String>,
    /// What its download lacks; none if it is whole.
    pub missing: Option<String>,
}

/// A file of the cache, by the hash of its bytes.
pub(super) struct Blob {
    /// The hash, as far as the hub tells one.
    hash: String,
    /// Where it is when it is complete.
    pub(super) path: PathBuf,
    /// Where it is before.
    pub(super) incomplete: PathBuf,
}

/// A repository in the cache, at one revision.
pub(super) struct CachedRepo {
    cached: CacheRepo,
    /// Its folder.
    folder: PathBuf,
    wanted: HubReference,
}

impl CachedRepo {
    pub(super) fn new(root: &Path, wanted: &HubReference) -> Self {
        let (repo, revision) = (wanted.repo.clone(), wanted.revision.clone());
        let repo = Repo::with_revision(repo, RepoType::Model, revision);
        Self {
            folder: root.join(repo.folder_name()),
            cached: Cache::new(root.to_owned()).repo(repo),
            wanted: wanted.clone(),
        }
    }

    pub(super) fn blob(&self, etag: &str) -> Blob {
        let path = self.cached.blob_path(etag);
        let incomplete = path.with_file_name(format!("{etag}.incomplete"));
        Blob {
            hash: etag.to_owned(),
            path,
            incomplete,
        }
    }

    /// The folder of a commit.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.cached.pointer_path(commit)
    }

    /// Waits until nobody else fills the blob `etag`; the file returned is the lock. The Python library
    /// takes the same.
    pub(super) fn lock(&self, etag: &str) -> Result<File, HubError> {
        let (root, name) = (
            self.folder.with_file_name(".locks"),
            self.folder.file_name(),
        );
        let folder = root.join(name.unwrap_or_default());
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

    /// Removes what is damaged of `file` of `commit`: its bytes in `blob`, and a link to other ones.
    pub(super) fn remove_damaged(
        &self,
        commit: &str,
        file: &str,
        blob: &Blob,
    ) -> Result<(), HubError> {
        let link = self.snapshot(commit).join(file);
        for path in [&blob.path, &link] {
            if path.is_file()
                && integrity::damage(path, &blob.hash)
                    .map_err(HubError::io(path))?
                    .is_some()
            {
                fs::remove_file(path).map_err(HubError::io(path))?;
            }
        }
        Ok(())
    }

    /// Notes that the revision is `commit`.
    pub(super) fn note(&self, commit: &str) -> Result<(), HubError> {
        if self.wanted.revision == commit {
            return Ok(());
        }
        let noted = self.cached.create_ref(commit);
        noted.map_err(HubError::io(&self.folder))
    }

    /// Returns what is here of the revision, if it is all that is needed.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn complete(&self) -> Result<Snapshot, String> {
        let (folder, revision) = (&self.folder, &self.wanted.revision);
        let noted = fs::read_to_string(folder.join("refs").join(revision));
        let commit = noted.as_ref().unwrap_or(revision).trim().to_owned();
        let snapshot = self.snapshot(&commit);
        let names = files_below(&snapshot);
        // A commit's hash is a plain name.
        if !integrity::is_sha1(&commit) || names.is_empty() {
            let mut started = models_in(folder, &self.wanted.repo).into_iter();
            let started = started.find_map(|model| model.missing);
            return Err(match started {
                Some(missing) => format!("only a part of it is here: {missing}"),
                None => format!("revision {revision} was never downloaded"),
            });
        }
        let needed = match &self.wanted.file {
            Some(file) => all_here(part_name::files(file), &names),
            None => needed(&snapshot, &names, &self.wanted.repo),
        };
        let needed = needed.map_err(|problem| problem + &unfinished(folder))?;
        let of_snapshot = |name: String| file(&snapshot, name, false);
        let path = match &self.wanted.file {
            Some(file) => part_name::first(snapshot.join(file)),
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

/// The files of a checkpoint, if all are among `names`, in the folder `snapshot`; or what is missing.
fn needed(snapshot: &Path, names: &BTreeSet<String>, repo: &str) -> Result<Vec<String>, String> {
    let mut needed = contents::small_files(names);
    if !names.contains(contents::CONFIG) {
        return Err(format!("{} is missing", contents::CONFIG));
    }
    let weights = contents::weights(names).ok_or("its weights are missing")?;
    needed.push(weights.to_owned());
    if weights == contents::INDEX {
        let shards = contents::shards(&snapshot.join(weights), repo);
        needed.extend(shards.map_err(|error| error.to_string())?);
    }
    all_here(needed, names)
}

/// The `needed` files, if all are among `names`; or which are not.
fn all_here(needed: Vec<String>, names: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let mut lacking = needed.iter().filter(|file| !names.contains(*file));
    match (lacking.next(), lacking.count()) {
        (None, _) => Ok(needed),
        (Some(first), 0) => Err(format!("{first} is missing")),
        (Some(first), others) => Err(format!("{first} and {others} more files are missing")),
    }
}

/// Returns what is known of a file in the folder of a commit.
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

/// Every model in the cache at `root`.
pub(super) fn models(root: &Path) -> Vec<CachedModel> {
    let folders: BTreeMap<String, PathBuf> = subfolders(root).collect();
    let models = folders.into_iter().filter_map(|(name, folder)| {
        let repo = name.strip_prefix("models--")?.replacen("--", "/", 1);
        Some(models_in(&folder, &repo))
    });
    models.flatten().collect()
}

/// The models in `folder`, that of the repository `repo`: one for each commit.
fn models_in(folder: &Path, repo: &str) -> Vec<CachedModel> {
    let refs = folder.join("refs");
    let commit_of = |name: &String| fs::read_to_string(refs.join(name)).unwrap_or_default();
    let refs: Vec<(String, String)> = files_below(&refs)
        .into_iter()
        .map(|name| (commit_of(&name).trim().to_owned(), name))
        .collect();
    let unfinished = unfinished(folder);
    let snapshot = |commit: String, path: PathBuf, files: Vec<SnapshotFile>| Snapshot {
        repo: repo.to_owned(),
        commit,
        path,
        files,
    };
    let mut found = Vec::new();
    let commits: BTreeMap<String, PathBuf> = subfolders(&folder.join("snapshots")).collect();
    for (commit, path) in commits {
        let names = files_below(&path);
        if names.is_empty() {
            continue;
        }
        let leading = refs.iter().filter(|(to, _)| *to == commit);
        let revisions = leading.map(|(_, name)| name.clone()).collect();
        let missing = missing(&path, &names, repo).map(|problem| problem + &unfinished);
        let files = names.into_iter().map(|name| file(&path, name, false));
        found.push(CachedModel {
            snapshot: snapshot(commit, path.clone(), files.collect()),
            revisions,
            missing,
        });
    }
    if found.is_empty() && !unfinished.is_empty() {
        found.push(CachedModel {
            snapshot: snapshot(String::new(), folder.to_owned(), Vec::new()),
            revisions: Vec::new(),
            missing: Some(format!("no file is whole{unfinished}")),
        });
    }
    found
}

/// Returns what a snapshot with the files `names` lacks. A GGUF file is a model by itself, or with those it is one of.
fn missing(snapshot: &Path, names: &BTreeSet<String>, repo: &str) -> Option<String> {
    let gguf = names.iter().filter(|name| has_ending(name, "gguf"));
    let models = part_name::models(gguf.cloned().collect());
    if !models.is_empty() {
        let lacking = |name: &String| all_here(part_name::files(name), names).err();
        return models.iter().find_map(lacking);
    }
    needed(snapshot, names, repo).err()
}

/// How much of unfinished files is in a repository's folder, in brackets; empty if there are none.
fn unfinished(folder: &Path) -> String {
    let entries = fs::read_dir(folder.join("blobs"));
    let unfinished = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| has_ending(entry.path(), "incomplete"));
    let sizes = unfinished.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len()));
    match sizes.sum::<u64>() {
        0 => String::new(),
        bytes => format!(
            " ({bytes} bytes of unfinished files are here, and a download goes on from them)"
        ),
    }
}

/// `snapshot`, if none of its files is damaged; `why` it cannot be downloaded now.
pub(super) fn whole(
    snapshot: Snapshot,
    wanted: &HubReference,
    why: &'static str,
) -> Result<Snapshot, HubError> {
    let folder = match &wanted.file {
        Some(file) => snapshot.path.ancestors().nth(file.matches('/').count() + 1),
        None => Some(snapshot.path.as_path()),
    };
    let folder = folder.unwrap_or(&snapshot.path);
    for file in &snapshot.files {
        let path = folder.join(&file.name);
        let damage = integrity::damage(&path, &file.hash).map_err(HubError::io(&path))?;
        if let Some(problem) = damage {
            return Err(HubError::Damaged {
                path,
                problem,
                why,
                model: wanted.to_string(),
            });
        }
    }
    Ok(snapshot)
}

fn subfolders(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        entry.path().is_dir().then(|| (name, entry.path()))
    })
}
