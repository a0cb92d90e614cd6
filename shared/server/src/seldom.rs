//! Log lines that anyone can cause, at a bounded rate.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often one kind of event is logged at most.
const INTERVAL: Duration = Duration::from_secs(5);

/// Lets the first of many events through, and then one every five seconds: whoever can reach a port must
/// not be able to fill a disk.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    latest: Option<Instant>,
    passed_over: u64,
}

impl Seldom {
    /// Whether this event is let through; how many were not since the last one that was.
    pub(crate) fn passes(&self) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.latest.is_some_and(|latest| now - latest < INTERVAL) {
            state.passed_over += 1;
            return None;
        }
        state.latest = Some(now);
        Some(std::mem::take(&mut state.passed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_of_a_flood_passes_and_counts_the_others() {
        let seldom = Seldom::default();
        assert_eq!(seldom.passes(), Some(0));
        assert_eq!((seldom.passes(), seldom.passes()), (None, None));
        tokio::time::advance(INTERVAL).await;
        assert_eq!(seldom.passes(), Some(2));
        assert_eq!(seldom.passes(), None);
    }
}
