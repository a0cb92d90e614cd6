//! Files that are read again when they change, without a restart.

use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::bounded::{self, MAX_SETTINGS_BYTES};

/// A file that a setting names and that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {}: {problem}", file.display())]
pub struct FileError {
    /// The setting that names the file.
    pub setting: String,
    file: PathBuf,
    problem: String,
}

impl FileError {
    /// Creates the error that `problem` is with the `file` that `setting` names.
    pub(crate) fn new(setting: &str, file: &Path, problem: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            file: file.to_owned(),
            problem: problem.into(),
        }
    }
}

/// Returns the contents of the `file` that `setting` names.
///
/// # Errors
/// [`FileError`] if it cannot be read.
pub(crate) fn contents(setting: &str, file: &Path) -> Result<Vec<u8>, FileError> {
    bounded::file(file, MAX_SETTINGS_BYTES)
        .map_err(|error| FileError::new(setting, file, format!("cannot be read: {error}")))
}

/// What was last read of some files, and could be used. `Debug` says nothing of it: a token must not end up in a log.
#[derive(derive_more::Debug)]
#[debug("Reloaded")]
pub(crate) struct Reloaded<T> {
    current: watch::Receiver<Arc<T>>,
    /// The files that the value is read from, which are watched until it is dropped; none if it never changes.
    files: Option<Arc<Files<T>>>,
}

impl<T: Default> Default for Reloaded<T> {
    fn default() -> Self {
        Self::fixed(T::default())
    }
}

impl<T> Reloaded<T> {
    /// Reads `files` by `read`, which also checks them, and looks every `interval` whether one of them has changed, in
    /// which case it reads them again. If the interval is zero, only [`Reloads::read`] does. If they cannot be used, a
    /// warning is logged and the value read before stays. `what` names the files in the log.
    ///
    /// Contents are compared rather than times: Kubernetes swaps symbolic links, and the clock of a
    /// shared folder is another machine's.
    ///
    /// # Errors
    /// The error of `read`, the first time.
    ///
    /// # Panics
    /// Outside a Tokio runtime, unless `interval` is zero.
    pub(crate) fn start<E>(
        what: &'static str,
        files: Vec<PathBuf>,
        interval: Duration,
        read: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, E>
    where
        T: Send + Sync + 'static,
        E: Display + Send + 'static,
    {
        // Before reading: what changes in between is read once more.
        let seen = fingerprint(&files);
        let (sender, current) = watch::channel(Arc::new(read()?));
        let files = Arc::new(Files {
            what,
            paths: files,
            read: Box::new(move || read().map_err(|error| error.to_string())),
            seen: Mutex::new(seen),
            sender,
        });
        if !interval.is_zero() {
            let watched = Arc::downgrade(&files);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(interval).await;
                    let Some(files) = watched.upgrade() else {
                        break;
                    };
                    // Reading may block for long, for example if the file is on a disk that does not answer.
                    let looking = tokio::task::spawn_blocking(move || files.read_if_changed());
                    match looking.await {
                        Ok(Some(Ok(()))) => tracing::info!("{what} read again"),
                        Ok(Some(Err(error))) => warn_of(what, &error),
                        Ok(None) | Err(_) => {}
                    }
                }
            });
        }
        let files = Some(files);
        Ok(Arc::new(Self { current, files }))
    }

    /// Creates a value that never changes.
    pub(crate) fn fixed(value: T) -> Self {
        Self {
            current: watch::channel(Arc::new(value)).1,
            files: None,
        }
    }

    /// Returns the current value.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.borrow())
    }
}

/// Files, and how a value is read from them.
struct Files<T> {
    /// Their name in the log.
    what: &'static str,
    paths: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, String> + Send + Sync>,
    /// Fingerprint of the contents read last, usable or not. Locked while the files are read, so that only one thread
    /// reads them.
    seen: Mutex<u64>,
    sender: watch::Sender<Arc<T>>,
}

impl<T> Files<T> {
    /// Reads the files if they have changed since; returns none if they have not, else what [`read`](Self::read)
    /// returns.
    fn read_if_changed(&self) -> Option<Result<(), String>> {
        let mut seen = self.seen.lock();
        let found = fingerprint(&self.paths);
        if found == *seen {
            return None;
        }
        *seen = found;
        Some(self.read())
    }

    /// Reads the files and replaces the current value.
    ///
    /// # Errors
    /// If they cannot be used; the current value stays.
    fn read(&self) -> Result<(), String> {
        self.sender.send_replace(Arc::new((self.read)()?));
        Ok(())
    }

    /// Reads the files, changed or not; returns whether they could be used. If not, it logs a warning.
    fn reload(&self) -> bool {
        let mut seen = self.seen.lock();
        *seen = fingerprint(&self.paths);
        let outcome = self.read();
        if let Err(error) = &outcome {
            warn_of(self.what, error);
        }
        outcome.is_ok()
    }
}

fn warn_of(what: &str, error: &str) {
    tracing::warn!(
        %error,
        "{what} cannot be used as they are now; those read before stay in use"
    );
}

/// Reads some files again; returns their name, and whether they could be used.
type Reload = dyn Fn() -> (&'static str, bool) + Send + Sync;

/// All files that a process reads again on demand. Clones share the list.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Reloads")]
pub struct Reloads(Arc<Mutex<Vec<Arc<Reload>>>>);

impl Reloads {
    /// Adds the files of `reloading`, if it has any.
    pub(crate) fn add<T: Send + Sync + 'static>(&self, reloading: &Reloaded<T>) {
        if let Some(files) = &reloading.files {
            let files = Arc::clone(files);
            let reload = move || (files.what, files.reload());
            self.0.lock().push(Arc::new(reload));
        }
    }

    /// Reads all files now, changed or not, in the calling thread. Returns the name of each, and whether it could be
    /// used. If it could not, a warning is logged and the value read before stays.
    pub fn read(&self) -> Vec<(&'static str, bool)> {
        let all = self.0.lock().clone();
        let mut outcomes: Vec<_> = all.iter().map(|reload| reload()).collect();
        // Several services of a process may have added the same files.
        outcomes.sort_unstable();
        outcomes.dedup();
        outcomes
    }
}

/// Tells contents apart; a file that cannot be read is different from every one that can.
fn fingerprint(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let contents = bounded::file(file, MAX_SETTINGS_BYTES);
        contents
            .map_err(|error| error.to_string())
            .hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
