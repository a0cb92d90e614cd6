//! How far work on a model is that takes a while: told to who watches, and of loading as events where it takes long.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum WorkKind {
    /// A file comes from the hub.
    Downloading,
    /// Weights are read and brought to the format they are computed in.
    Loading,
    /// A file is written.
    Writing,
}

/// How far it is. `done_bytes` never goes back but where a download must begin anew, and is `total_bytes` once,
/// when the work is done; of work that fails, there is nothing more to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkProgress<'a> {
    /// What is done.
    pub work: WorkKind,
    /// The file or the model it is done on.
    pub name: &'a str,
    /// Bytes that are done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

impl WorkProgress<'_> {
    /// Whether the work is done.
    pub fn is_done(&self) -> bool {
        self.done_bytes == self.total_bytes
    }

    /// How much of it is done, of 100.
    pub fn percent(&self) -> u64 {
        self.done_bytes.saturating_mul(100) / self.total_bytes.max(1)
    }
}

/// Watches what is done on one model at a time.
pub trait ProgressObserver: Debug + Send + Sync {
    /// It is this far. Called often, from the thread that does the work.
    fn progress(&self, at: WorkProgress<'_>);
    /// Something that a user should read, in one line.
    fn note(&self, line: &str);
}

/// Between two lines of a download.
const INTERVAL: Duration = Duration::from_secs(10);

/// Tells of a download now and then, and of its end.
#[derive(Debug, Default)]
pub struct ProgressLines {
    /// When the last line was written, or the download began.
    last: Mutex<Option<Instant>>,
}

impl ProgressLines {
    /// The line to be written `now`, if there is one.
    fn line(&self, at: WorkProgress<'_>, now: Instant) -> Option<String> {
        if at.work != WorkKind::Downloading {
            return None;
        }
        let (file, bytes) = (at.name, at.total_bytes);
        let mut last = self.last.lock();
        if at.is_done() {
            *last = None;
            return Some(format!("downloaded {file}: {bytes} bytes"));
        }
        let since = *last.get_or_insert(now);
        if now.duration_since(since) < INTERVAL {
            return None;
        }
        *last = Some(now);
        let percent = at.percent();
        Some(format!("downloading {file}: {percent} % of {bytes} bytes"))
    }
}

impl ProgressObserver for ProgressLines {
    fn progress(&self, at: WorkProgress<'_>) {
        if let Some(line) = self.line(at, Instant::now()) {
            self.note(&line);
        }
    }

    fn note(&self, line: &str) {
        // A service goes on where its terminal was closed.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Between two events; a model that is loaded sooner has none.
const EVERY: Duration = Duration::from_secs(5);

/// Counts the bytes of a model's tensors as they are read.
#[derive(Debug)]
pub(crate) struct LoadProgress {
    name: String,
    observer: Arc<dyn ProgressObserver>,
    total_bytes: AtomicU64,
    done_bytes: AtomicU64,
    logged: Mutex<Instant>,
}

impl Default for LoadProgress {
    fn default() -> Self {
        Self::of("", Arc::new(ProgressLines::default()))
    }
}

impl LoadProgress {
    /// That of the model `name`, which `observer` watches.
    pub(crate) fn of(name: &str, observer: Arc<dyn ProgressObserver>) -> Self {
        Self {
            name: name.to_owned(),
            observer,
            total_bytes: AtomicU64::new(0),
            done_bytes: AtomicU64::new(0),
            logged: Mutex::new(Instant::now()),
        }
    }

    /// Loading of tensors of `total_bytes` begins.
    pub(crate) fn begin(&self, total_bytes: u64) {
        self.total_bytes.store(total_bytes, Ordering::Relaxed);
        self.done_bytes.store(0, Ordering::Relaxed);
        *self.logged.lock() = Instant::now();
        self.tell(0);
    }

    /// A tensor of this many bytes was read.
    pub(crate) fn read(&self, bytes: u64) {
        let done = self.done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Some are read twice, or for other ends than loading; and the end is told once.
        if done < self.total_bytes.load(Ordering::Relaxed) {
            self.tell(done);
        }
    }

    /// The model is loaded, whether or not it has all of the tensors.
    pub(crate) fn end(&self) {
        let total_bytes = self.total_bytes.load(Ordering::Relaxed);
        self.done_bytes.store(total_bytes, Ordering::Relaxed);
        self.tell(total_bytes);
    }

    fn tell(&self, done_bytes: u64) {
        let at = WorkProgress {
            work: WorkKind::Loading,
            name: &self.name,
            done_bytes,
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
        };
        self.observer.progress(at);
        if !at.is_done() && self.is_due(Instant::now()) {
            let (model, total_bytes, percent) = (at.name, at.total_bytes, at.percent());
            tracing::info!(model, done_bytes, total_bytes, percent, "loading");
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let mut logged = self.logged.lock();
        let is_due = now.duration_since(*logged) >= EVERY;
        if is_due {
            *logged = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checkpoint, ModelConfig, WeightFormat};

    #[test]
    fn a_download_is_told_of_every_ten_seconds_and_at_its_end() {
        let (lines, began) = (ProgressLines::default(), Instant::now());
        let line = |work, done_bytes, seconds| {
            let at = WorkProgress {
                work,
                name: "a.gguf",
                done_bytes,
                total_bytes: 200,
            };
            lines.line(at, began + Duration::from_secs(seconds))
        };
        let told = [(0, 0), (50, 9), (60, 11), (80, 20), (100, 21), (200, 22)];
        let told = told.map(|(done, at)| line(WorkKind::Downloading, done, at));
        let expected = [
            None,
            None,
            Some("downloading a.gguf: 30 % of 200 bytes"),
            None,
            Some("downloading a.gguf: 50 % of 200 bytes"),
            Some("downloaded a.gguf: 200 bytes"),
        ];
        assert_eq!(told.each_ref().map(Option::as_deref), expected);
        // The next file has its own ten seconds.
        assert_eq!(line(WorkKind::Downloading, 1, 33), None);
        assert_eq!(line(WorkKind::Loading, 1, 99), None);
    }

    #[test]
    fn events_are_five_seconds_apart() {
        let progress = LoadProgress::default();
        let began = *progress.logged.lock();
        let at = [100, 4900, 5100, 5200, 10_200, 10_300, 99_000];
        let due = at.map(|ms| progress.is_due(began + Duration::from_millis(ms)));
        assert_eq!(due, [false, false, true, false, true, false, true]);
    }

    #[derive(Debug, Default)]
    struct Seen(Mutex<Vec<(String, u64, u64)>>);

    impl ProgressObserver for Seen {
        fn progress(&self, at: WorkProgress<'_>) {
            assert_eq!(at.work, WorkKind::Loading);
            let seen = (at.name.to_owned(), at.done_bytes, at.total_bytes);
            self.0.lock().push(seen);
        }

        fn note(&self, line: &str) {
            panic!("{line}");
        }
    }

    #[test]
    fn what_is_told_of_loading_grows_and_ends_once_at_the_total() {
        let seen = Arc::new(Seen::default());
        let checkpoint = Checkpoint::random(ModelConfig::llama(), 1).expect("a checkpoint");
        let layers = checkpoint.config().layers;
        let checkpoint = checkpoint.observed("tiny", seen.clone());
        for format in [WeightFormat::F32, WeightFormat::Q8_0] {
            checkpoint.load(format).expect("a model");
            // Read for another end.
            let norm = checkpoint
                .weights()
                .tensor("model.norm.weight", &[checkpoint.config().hidden_size]);
            norm.expect("a tensor");
            let seen = std::mem::take(&mut *seen.0.lock());
            let total = seen[0].2;
            assert_eq!(seen[0], ("tiny".to_owned(), 0, total));
            assert!(total > 0 && seen.len() > layers, "{seen:?}");
            assert!(seen.is_sorted_by(|a, b| a.1 < b.1), "{seen:?}");
            assert_eq!(seen[seen.len() - 1].1, total, "{seen:?}");
        }
    }
}
