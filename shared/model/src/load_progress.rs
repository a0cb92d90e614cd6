//! How far loading is, as events: a large model takes a while.

use std::time::{Duration, Instant};

/// Between two events; a model that is loaded sooner has none.
const EVERY: Duration = Duration::from_secs(1);

/// Counts layers as they are loaded.
#[derive(Debug)]
pub(crate) struct LoadProgress {
    layers: usize,
    reported: Instant,
}

impl LoadProgress {
    pub(crate) fn of(layers: usize) -> Self {
        Self {
            layers,
            reported: Instant::now(),
        }
    }

    /// Tells that `done` layers are loaded, if it is time to.
    pub(crate) fn report(&mut self, done: usize) {
        if self.due(Instant::now()) {
            let percent = done * 100 / self.layers.max(1);
            tracing::info!(done, layers = self.layers, percent, "loading layers");
        }
    }

    fn due(&mut self, now: Instant) -> bool {
        let due = now.duration_since(self.reported) >= EVERY;
        if due {
            self.reported = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_once_a_second() {
        let mut progress = LoadProgress::of(10);
        let began = progress.reported;
        let at = [100, 900, 1100, 1200, 2200, 2300, 9000];
        let reported = at.map(|ms| progress.due(began + Duration::from_millis(ms)));
        assert_eq!(reported, [false, false, true, false, true, false, true]);
    }
}
