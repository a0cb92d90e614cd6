//! How far loading is: told to who watches, and as events where it takes long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::progress::{Lines, Observer, Progress, Work};

/// Between two events; a model that is loaded sooner has none.
const EVERY: Duration = Duration::from_secs(5);

/// Counts the bytes of a model's tensors as they are read.
#[derive(Debug)]
pub(crate) struct LoadProgress {
    name: String,
    observer: Arc<dyn Observer>,
    total_bytes: AtomicU64,
    done_bytes: AtomicU64,
    logged: Mutex<Instant>,
}

impl Default for LoadProgress {
    fn default() -> Self {
        Self::of("", Arc::new(Lines::default()))
    }
}

impl LoadProgress {
    /// That of the model `name`, which `observer` watches.
    pub(crate) fn of(name: &str, observer: Arc<dyn Observer>) -> Self {
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
        *self.logged.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
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
        let at = Progress {
            work: Work::Loading,
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
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn events_are_five_seconds_apart() {
        let progress = LoadProgress::default();
        let began = *progress.logged.lock().expect("no panic");
        let at = [100, 4900, 5100, 5200, 10_200, 10_300, 99_000];
        let due = at.map(|ms| progress.is_due(began + Duration::from_millis(ms)));
        assert_eq!(due, [false, false, true, false, true, false, true]);
    }

    #[derive(Debug, Default)]
    struct Seen(Mutex<Vec<(String, u64, u64)>>);

    impl Observer for Seen {
        fn progress(&self, at: Progress<'_>) {
            assert_eq!(at.work, Work::Loading);
            let seen = (at.name.to_owned(), at.done_bytes, at.total_bytes);
            self.0.lock().expect("no panic").push(seen);
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
            let seen = std::mem::take(&mut *seen.0.lock().expect("no panic"));
            let total = seen[0].2;
            assert_eq!(seen[0], ("tiny".to_owned(), 0, total));
            assert!(total > 0 && seen.len() > layers, "{seen:?}");
            assert!(seen.is_sorted_by(|a, b| a.1 < b.1), "{seen:?}");
            assert_eq!(seen[seen.len() - 1].1, total, "{seen:?}");
        }
    }
}
