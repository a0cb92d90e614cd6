//! Wall-clock times of a request's moments.

use std::time::{Instant, SystemTime};

/// Tells the wall-clock time of moments near the one it was made at, so that spans of a request never
/// overlap because somebody set the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    wall: SystemTime,
    made: Instant,
}

impl Clock {
    pub(super) fn now() -> Self {
        Self {
            wall: SystemTime::now(),
            made: Instant::now(),
        }
    }

    /// The wall-clock time at `moment`, which may lie before the clock was made.
    pub(super) fn at(&self, moment: Instant) -> SystemTime {
        match moment.checked_duration_since(self.made) {
            Some(after) => self.wall + after,
            None => self.wall - self.made.duration_since(moment),
        }
    }
}
