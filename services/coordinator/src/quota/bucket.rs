//! A token bucket: so many units a minute, of which as many as a minute's may be used at once.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;

/// A bucket that is filled by `per_minute` units in a minute.
#[derive(Debug)]
pub(super) struct Bucket {
    per_minute: NonZeroU32,
    /// Units that were left at `counted`; below zero if more were used than there were.
    left: f64,
    counted: Instant,
}

/// Why units cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// The units will be there after this time, if nobody else takes them.
    For(Duration),
    /// The bucket never holds as many.
    Forever,
}

impl Bucket {
    /// Returns a full bucket.
    pub(super) fn new(per_minute: NonZeroU32) -> Self {
        Self {
            per_minute,
            left: per_minute.get().into(),
            counted: Instant::now(),
        }
    }

    /// Takes `units`, all of them or none.
    pub(super) fn take(&mut self, units: u64) -> Result<(), Shortage> {
        self.check(units)?;
        self.left -= units as f64;
        Ok(())
    }

    /// Returns whether `units` are left, without taking them.
    pub(super) fn check(&mut self, units: u64) -> Result<(), Shortage> {
        if units > u64::from(self.per_minute.get()) {
            return Err(Shortage::Forever);
        }
        self.refill();
        let lacking = units as f64 - self.left;
        if lacking <= 0.0 {
            return Ok(());
        }
        let seconds = (lacking / self.per_second()).ceil().max(1.0);
        Err(Shortage::For(Duration::from_secs(seconds as u64)))
    }

    /// Takes `units` that were used already, whether there are as many or not.
    pub(super) fn charge(&mut self, units: u64) {
        self.refill();
        self.left -= units as f64;
    }

    fn refill(&mut self) {
        let now = Instant::now();
        let came = (now - self.counted).as_secs_f64() * self.per_second();
        self.left = (self.left + came).min(self.per_minute.get().into());
        self.counted = now;
    }

    fn per_second(&self) -> f64 {
        f64::from(self.per_minute.get()) / 60.0
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn bucket(per_minute: u32) -> Bucket {
        Bucket::new(NonZeroU32::new(per_minute).expect("some"))
    }

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_used_comes_back_with_time() {
        let mut bucket = bucket(60);
        assert_eq!(bucket.take(60), Ok(()));
        assert_eq!(bucket.take(1), Err(Shortage::For(seconds(1))));
        assert_eq!(bucket.take(10), Err(Shortage::For(seconds(10))));
        advance(seconds(9)).await;
        assert_eq!(bucket.take(10), Err(Shortage::For(seconds(1))));
        advance(seconds(1)).await;
        assert_eq!(bucket.take(10), Ok(()));
        assert_eq!(bucket.check(1), Err(Shortage::For(seconds(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_minute_is_saved_up() {
        let mut bucket = bucket(6);
        advance(seconds(3_600)).await;
        assert_eq!(bucket.take(6), Ok(()));
        assert_eq!(bucket.take(1), Err(Shortage::For(seconds(10))));
        assert_eq!(bucket.take(7), Err(Shortage::Forever));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_used_already_is_waited_for() {
        let mut bucket = bucket(60);
        bucket.charge(90);
        assert_eq!(bucket.check(1), Err(Shortage::For(seconds(31))));
        advance(seconds(31)).await;
        assert_eq!(bucket.take(1), Ok(()));
    }
}
