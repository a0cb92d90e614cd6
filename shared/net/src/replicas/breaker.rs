//! A circuit breaker, by which a replica that keeps failing is left alone for a while, and the budget of repetitions.

use std::time::{Duration, Instant};

use smart_default::SmartDefault;

/// Failed rounds in a row after which a replica counts as dead.
const FAILURES: u32 = 7;
/// How long it is left alone the first time; doubles with each failure after that.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long at most.
const LONGEST: Duration = Duration::from_secs(60);

/// What is known of a replica's health.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    openings: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Returns whether the replica may be tried. Once the pause is over one failure opens it again.
    pub(super) fn is_closed(&self, now: Instant) -> bool {
        self.open_until.is_none_or(|until| until <= now)
    }

    /// Notes that the replica answered; returns whether it was given up before.
    pub(super) fn succeeded(&mut self) -> bool {
        let was_open = self.openings > 0;
        *self = Self::default();
        was_open
    }

    /// Notes that the replica failed one round; returns whether it is left alone from now on.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures += 1;
        (self.failures >= FAILURES || self.openings > 0) && self.unreachable(now)
    }

    /// Notes that the replica could not be reached: there is no use in trying six times more. Returns whether it is
    /// left alone from now on, and was not before.
    pub(super) fn unreachable(&mut self, now: Instant) -> bool {
        if !self.is_closed(now) {
            return false;
        }
        let pause = SHORTEST * 2_u32.pow(self.openings.min(6));
        self.open_until = Some(now + pause.min(LONGEST));
        self.openings += 1;
        self.failures = 0;
        true
    }
}

/// Repetitions for each request: one in ten.
const PER_REQUEST: f64 = 0.1;

/// Most that is saved up, and what there is at first.
const MOST: f64 = 10.0;

/// A budget of repetitions: each request adds to it, each repetition takes one.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub(super) struct RetryBudget(#[default(MOST)] f64);

impl RetryBudget {
    /// A request was made for the first time.
    pub(super) fn requested(&mut self) {
        self.0 = (self.0 + PER_REQUEST).min(MOST);
    }

    /// Takes a repetition; whether there was one.
    pub(super) fn take(&mut self) -> bool {
        let has_one = self.0 >= 1.0;
        if has_one {
            self.0 -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_failures_in_a_row_open_it_and_one_success_closes_it() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..6 {
            breaker.failed(now);
        }
        assert!(breaker.is_closed(now));
        breaker.succeeded();
        for _ in 0..6 {
            breaker.failed(now);
        }
        assert!(breaker.is_closed(now));
        breaker.failed(now);
        assert!(!breaker.is_closed(now));
        assert!(breaker.is_closed(now + SHORTEST));
    }

    #[test]
    fn a_success_forgets_what_was_before_it() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for seconds in [0, 10, 20] {
            assert!(breaker.unreachable(now + Duration::from_secs(seconds)));
        }
        assert!(breaker.succeeded(), "it was given up before");
        assert!(!breaker.succeeded(), "it was not since");
        for failure in 1..=FAILURES {
            assert!(breaker.is_closed(now), "before failure {failure}");
            assert_eq!(breaker.failed(now), failure == FAILURES);
        }
        assert!(!breaker.is_closed(now + SHORTEST / 2) && breaker.is_closed(now + SHORTEST));
    }

    #[test]
    fn the_pause_doubles_up_to_a_minute() {
        let mut now = Instant::now();
        let mut breaker = Breaker::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            breaker.unreachable(now);
            // A second failure at the same time is the same outage.
            breaker.unreachable(now);
            assert!(!breaker.is_closed(now + Duration::from_millis(seconds * 1_000 - 1)));
            now += Duration::from_secs(seconds);
            assert!(breaker.is_closed(now), "{seconds}");
        }
    }

    #[test]
    fn one_request_in_ten_may_be_repeated() {
        let mut budget = RetryBudget::default();
        assert_eq!((0..100).filter(|_| budget.take()).count(), 10);
        for _ in 0..1_000 {
            budget.requested();
        }
        // No more than ten are saved up.
        assert_eq!((0..100).filter(|_| budget.take()).count(), 10);
        let taken = (0..1_000).filter(|_| {
            budget.requested();
            budget.take()
        });
        assert!((99..=101).contains(&taken.count()));
    }
}
