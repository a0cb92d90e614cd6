//! Files that are read again when they change, without a restart.

use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

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
    std::fs::read(file)
        .map_err(|error| FileError::new(setting, file, format!("cannot be read: {error}")))
}

/// What was last read of some files, and could be used. Clones share it.
#[derive(Debug)]
pub(crate) struct Reloading<T>(watch::Receiver<Arc<T>>);

impl<T> Clone for Reloading<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Reloading<T> {
    fn default() -> Self {
        Self::fixed(T::default())
    }
}

impl<T> Reloading<T> {
    /// Reads now, and again every `interval` in which a file of `files` has changed; never again if it is
    /// zero. `read` reads and checks those files; `what` names them in the log. What cannot be used is
    /// logged, and what was there before stays.
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
        let mut seen = fingerprint(&files);
        let (sender, current) = watch::channel(Arc::new(read()?));
        if !interval.is_zero() {
            let source = Arc::new((files, read));
            tokio::spawn(async move {
                while !sender.is_closed() {
                    tokio::time::sleep(interval).await;
                    let source = Arc::clone(&source);
                    // A file may lie on a disk that does not answer.
                    let reading = tokio::task::spawn_blocking(move || {
                        let (files, read) = &*source;
                        let found = fingerprint(files);
                        (found != seen).then(|| (found, read()))
                    });
                    let Ok(Some((found, outcome))) = reading.await else {
                        continue;
                    };
                    seen = found;
                    match outcome {
                        Ok(new) => {
                            sender.send_replace(Arc::new(new));
                            tracing::info!("{what} read again");
                        }
                        Err(error) => tracing::warn!(
                            %error,
                            "{what} cannot be used as they are now; those read before stay in use"
                        ),
                    }
                }
            });
        }
        Ok(Self(current))
    }

    /// What never changes.
    pub(crate) fn fixed(value: T) -> Self {
        Self(watch::channel(Arc::new(value)).1)
    }

    /// What holds now.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }
}

/// Tells contents apart; a file that cannot be read is different from every one that can.
fn fingerprint(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let contents = std::fs::read(file).map_err(|error| error.kind());
        contents.hash(&mut hasher);
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
    fn what_cannot_be_read_at_the_start_is_refused() {
        let refused = Reloading::<u32>::start("numbers", vec![], Duration::ZERO, || Err("no"));
        assert_eq!(refused.unwrap_err(), "no");
    }
}
