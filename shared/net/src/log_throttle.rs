//! Log lines that anyone can cause, at a bounded rate.

use std::time::Duration;

use parking_lot::Mutex;
use smart_default::SmartDefault;
use tokio::time::Instant;

/// How often one kind of event is logged at most.
const INTERVAL: Duration = Duration::from_secs(5);

/// Lets the first of many events through, and then one in every interval: whoever can reach a port must not be
/// able to fill a disk.
#[derive(Debug, SmartDefault)]
pub struct LogThrottle {
    #[default(INTERVAL)]
    interval: Duration,
    /// When one was let through, and how many were not since then.
    latest: Mutex<(Option<Instant>, u64)>,
}

impl LogThrottle {
    /// Lets one through in so much time.
    pub fn every(interval: Duration) -> Self {
        let latest = Mutex::default();
        Self { interval, latest }
    }

    /// Returns whether this event is let through; how many were not since the last one that was.
    pub fn passes(&self) -> Option<u64> {
        self.passes_many(1)
    }

    /// Returns the same of an event that counts for so many.
    pub fn passes_many(&self, events: u64) -> Option<u64> {
        let now = Instant::now();
        let mut latest = self.latest.lock();
        let (at, passed_over) = &mut *latest;
        if at.is_some_and(|at| now - at < self.interval) {
            *passed_over += events;
            return None;
        }
        *at = Some(now);
        Some(std::mem::take(passed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_of_a_flood_passes_and_counts_the_others() {
        let throttle = LogThrottle::default();
        assert_eq!(throttle.passes(), Some(0));
        assert_eq!((throttle.passes(), throttle.passes()), (None, None));
        tokio::time::advance(INTERVAL).await;
        assert_eq!(throttle.passes(), Some(2));
        assert_eq!(throttle.passes(), None);
    }
}
