//! Files that are read again when they change, without a restart.

use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::bounded::{self, MAX_SETTINGS_BYTES};

/// A file that a setting names and that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {}: {problem}", file.display())]
pub struct FileError {
    setting: String,
    file: PathBuf,
    problem: String,
}

impl FileError {
    /// What is wrong with the `file` that `setting` names.
    pub(crate) fn new(setting: &str, file: &Path, problem: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            file: file.to_owned(),
            problem: problem.into(),
        }
    }

    /// The setting that names the file.
    pub fn setting(&self) -> &str {
        &self.setting
    }
}

/// The contents of the `file` that `setting` names.
///
/// # Errors
/// [`FileError`] if it cannot be read.
pub(crate) fn contents(setting: &str, file: &Path) -> Result<Vec<u8>, FileError> {
    bounded::file(file, MAX_SETTINGS_BYTES)
        .map_err(|error| FileError::new(setting, file, format!("cannot be read: {error}")))
}

/// What was last read of some files, and could be used. Clones share it.
pub(crate) struct Reloading<T> {
    current: watch::Receiver<Arc<T>>,
    /// None of what never changes. The files are watched for as long as somebody holds it.
    files: Option<Arc<Files<T>>>,
}

impl<T> Clone for Reloading<T> {
    fn clone(&self) -> Self {
        Self {
            current: self.current.clone(),
            files: self.files.clone(),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Reloading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reloading").field(&self.get()).finish()
    }
}

impl<T: Default> Default for Reloading<T> {
    fn default() -> Self {
        Self::fixed(T::default())
    }
}

impl<T> Reloading<T> {
    /// Reads now, and again every `interval` in which a file of `files` has changed; only where it is [told](Reloads)
    /// to if the interval is zero. `read` reads and checks those files; `what` names them in the log. What cannot be
    /// used is logged, and what was there before stays.
    ///
    /// Contents are compared rather than times: Kubernetes swaps symbolic links, and the clock of a
    /// shared folder is another machine's.
    ///
    /// # Errors
    /// What `read` says the first time.
    ///
    /// # Panics
    /// Outside a Tokio runtime, unless `interval` is zero.
    pub(crate) fn start<E>(
        what: &'static str,
        files: Vec<PathBuf>,
        interval: Duration,
        read: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E>
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
                    // A file may lie on a disk that does not answer.
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
        Ok(Self { current, files })
    }

    /// What never changes.
    pub(crate) fn fixed(value: T) -> Self {
        Self {
            current: watch::channel(Arc::new(value)).1,
            files: None,
        }
    }

    /// What holds now.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.borrow())
    }
}

/// Files, and what is made of them.
struct Files<T> {
    /// What they are called in the log.
    what: &'static str,
    paths: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, String> + Send + Sync>,
    /// What was read last, usable or not. Held while they are read, so that two do not do so in turn.
    seen: Mutex<u64>,
    sender: watch::Sender<Arc<T>>,
}

impl<T> Files<T> {
    /// Reads them, and says what is wrong with them; nothing if they are what they were.
    fn read_if_changed(&self) -> Option<Result<(), String>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let found = fingerprint(&self.paths);
        if found == *seen {
            return None;
        }
        *seen = found;
        Some(self.read())
    }

    /// Reads them, and takes over what could be used.
    ///
    /// # Errors
    /// What is wrong with them.
    fn read(&self) -> Result<(), String> {
        self.sender.send_replace(Arc::new((self.read)()?));
        Ok(())
    }
}

fn warn_of(what: &str, error: &str) {
    tracing::warn!(
        %error,
        "{what} cannot be used as they are now; those read before stay in use"
    );
}

/// What a process can be told to read again. Clones share it.
#[derive(Clone, Default)]
pub struct Reloads(Arc<Mutex<Vec<Arc<dyn Reload>>>>);

/// What can be read again.
trait Reload: Send + Sync {
    /// What it is called, and whether it could be used.
    fn reload(&self) -> (&'static str, bool);
}

impl<T: Send + Sync> Reload for Files<T> {
    fn reload(&self) -> (&'static str, bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = fingerprint(&self.paths);
        let outcome = self.read();
        if let Err(error) = &outcome {
            warn_of(self.what, error);
        }
        (self.what, outcome.is_ok())
    }
}

impl Reloads {
    /// Adds what `reloading` rests on.
    pub(crate) fn add<T: Send + Sync + 'static>(&self, reloading: &Reloading<T>) {
        if let Some(files) = &reloading.files {
            let files: Arc<dyn Reload> = files.clone();
            self.all().push(files);
        }
    }

    /// Reads everything now, changed or not, and tells what could be used and what not. What cannot is logged, and what
    /// was there before stays. Files are read in the calling thread.
    pub fn read(&self) -> Vec<(&'static str, bool)> {
        let all = self.all().clone();
        let mut outcomes: Vec<_> = all.iter().map(|files| files.reload()).collect();
        // The services of a process may each hold the same files.
        outcomes.sort_unstable();
        outcomes.dedup();
        outcomes
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<dyn Reload>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloads").finish_non_exhaustive()
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
mod tests {
    use super::*;

    /// Polls in real time, as files are read on other threads.
    const INTERVAL: Duration = Duration::from_millis(20);

    async fn eventually(what: &str, holds: impl Fn() -> bool) {
        for _ in 0..250 {
            if holds() {
                return;
            }
            tokio::time::sleep(INTERVAL).await;
        }
        panic!("not within five seconds: {what}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_change_is_taken_over_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        std::fs::write(&first, "1").unwrap();
        std::fs::write(&second, "2").unwrap();
        let link = folder.path().join("number");
        let point_to = |target: &PathBuf| {
            let new = folder.path().join("new");
            std::os::unix::fs::symlink(target, &new).unwrap();
            std::fs::rename(new, &link).unwrap();
        };
        point_to(&first);
        let file = link.clone();
        let reads = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&reads);
        let number = Reloading::start("numbers", vec![link.clone()], INTERVAL, move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            text.parse::<u32>().map_err(|error| error.to_string())
        })
        .unwrap();
        let held = number.get();
        assert_eq!(*held, 1);

        point_to(&second);
        eventually("the second", || *number.get() == 2).await;
        assert_eq!(*held, 1, "what is in use is not changed under the hand");

        std::fs::write(&second, "two").unwrap();
        let reads = || reads.load(std::sync::atomic::Ordering::Relaxed);
        eventually("a third reading", || reads() == 3).await;
        tokio::time::sleep(INTERVAL * 5).await;
        assert_eq!((*number.get(), reads()), (2, 3), "read once, and refused");

        std::fs::remove_file(&link).unwrap();
        eventually("a fourth reading", || reads() == 4).await;
        assert_eq!(*number.get(), 2);
        point_to(&first);
        eventually("the first again", || *number.get() == 1).await;
    }

    #[test]
    fn what_is_told_to_be_read_again_says_what_could_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["number", "other"].map(|name| folder.path().join(name));
        let reloads = Reloads::default();
        let numbers = files.clone().map(|file| {
            std::fs::write(&file, "1").unwrap();
            let what = if file.ends_with("number") {
                "numbers"
            } else {
                "others"
            };
            // Never looked at by itself.
            let started = Reloading::start(what, vec![file.clone()], Duration::ZERO, move || {
                let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
                text.parse::<u32>().map_err(|error| error.to_string())
            });
            let number = started.unwrap();
            reloads.add(&number);
            number
        });
        reloads.add(&numbers[0].clone());
        reloads.add(&Reloading::fixed(7));
        std::fs::write(&files[0], "2").unwrap();
        std::fs::write(&files[1], "two").unwrap();
        assert_eq!(numbers.each_ref().map(|number| *number.get()), [1, 1]);
        assert_eq!(reloads.read(), [("numbers", true), ("others", false)]);
        assert_eq!(numbers.each_ref().map(|number| *number.get()), [2, 1]);
    }

    #[test]
    fn a_file_without_an_end_is_refused() {
        let read = || contents("auth.token_file", Path::new("/dev/zero"));
        if Path::new("/dev/zero").exists() {
            let refused = read().unwrap_err().to_string();
            let said =
                "auth.token_file: /dev/zero: cannot be read: more than 16 MiB (16777216 bytes)";
            assert!(refused.starts_with(said), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_read_at_the_start_is_refused() {
        let refused = Reloading::<u32>::start("numbers", vec![], Duration::ZERO, || Err("no"));
        assert_eq!(refused.unwrap_err(), "no");
    }
}
