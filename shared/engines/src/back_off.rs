//! How long to wait before an engine that is busy is asked again.

use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits that double.
#[derive(Debug)]
pub(crate) struct BackOff {
    next: Duration,
    pub(crate) tries: u32,
}

impl BackOff {
    pub(crate) fn new() -> Self {
        Self {
            next: FIRST,
            tries: 0,
        }
    }

    /// The next wait, or what the engine says if that is longer; none if `left` is over by then.
    pub(crate) fn wait(&mut self, said: Option<Duration>, left: Duration) -> Option<Duration> {
        self.tries += 1;
        let wait = self.next.max(said.unwrap_or_default());
        self.next = (2 * self.next).min(LONGEST);
        (wait < left).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end_with_the_time() {
        let mut waits = BackOff::new();
        let left = Duration::from_secs(10);
        let found: Vec<u128> = (0..8)
            .map(|_| waits.wait(None, left).expect("time").as_millis())
            .collect();
        assert_eq!(found, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        let said = Some(Duration::from_secs(5));
        assert_eq!(waits.wait(said, left), said);
        assert_eq!(waits.wait(said, Duration::from_secs(5)), None);
        assert_eq!(waits.wait(None, Duration::from_secs(2)), None);
        assert_eq!(waits.tries, 11);
    }
}
