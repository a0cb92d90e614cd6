//! Waiting a moment for sequences that are about to come back, so that they share a forward.
//!
//! A verifier's sessions leave after each block, to draft the next one. Where a forward takes about as long for one
//! block as for several, those that come back in turn would each have a forward of their own, and wait for the
//! others': waiting a little less than what a forward costs whatever its rows brings them together, and then they
//! stay together, for they leave together.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::task::SlotId;

/// Share of a forward's fixed cost that the first of a batch waits for others at most.
const PATIENCE: f64 = 0.9;

/// How much later than usual a sequence is still expected, as a share of its usual time.
const GRACE: f64 = 0.25;

/// Weight of the latest time in the usual one.
const LATEST: f64 = 0.3;

/// A time so many times the usual one says that the sequence has another course from now on.
const CHANGED: f64 = 4.0;

/// When each slot's sequence is expected back.
#[derive(Debug, Default)]
pub(super) struct Gather {
    slots: HashMap<SlotId, Habit>,
    /// The usual time of all, in seconds: that of a slot of which nothing is known.
    usual: f64,
    /// Since when a forward waits.
    waits_since: Option<Instant>,
}

/// How long a slot's sequence stays away.
#[derive(Clone, Copy, Debug)]
struct Habit {
    left: Instant,
    /// Seconds from when it leaves to when it comes back.
    usual: f64,
    /// Times that it came back in about so much time.
    seen: u32,
}

impl Habit {
    fn expected(&self) -> Instant {
        self.left + Duration::from_secs_f64(self.usual)
    }

    fn last_expected(&self) -> Instant {
        self.left + Duration::from_secs_f64(self.usual * (1.0 + GRACE))
    }
}

impl Gather {
    /// The task on `slot` is done.
    pub(super) fn left(&mut self, slot: SlotId, now: Instant) {
        let habit = self.slots.entry(slot).or_insert(Habit {
            left: now,
            usual: self.usual,
            seen: u32::from(self.usual > 0.0),
        });
        habit.left = now;
    }

    /// A task on `slot` came at `when`.
    pub(super) fn came(&mut self, slot: SlotId, when: Instant) {
        let Some(habit) = self.slots.get_mut(&slot) else {
            return;
        };
        let away = when.saturating_duration_since(habit.left).as_secs_f64();
        if away > CHANGED * habit.usual {
            // Until it comes back so again, nobody waits for it.
            (habit.usual, habit.seen) = (away, 0);
        } else if habit.seen == 0 || away * CHANGED < habit.usual {
            (habit.usual, habit.seen) = (away, 1);
        } else {
            habit.usual += LATEST * (away - habit.usual);
            habit.seen += 1;
            self.usual = habit.usual;
        }
    }

    /// `slot` is given up.
    pub(super) fn forget(&mut self, slot: SlotId) {
        self.slots.remove(&slot);
    }

    /// Until when the forward of the tasks that are `ready`, each with whether it is yet to have its first, is to wait
    /// for others; none if it is to begin now. `fixed` is what a forward takes whatever its rows.
    ///
    /// No forward waits for longer than that, and none at all with somebody in it who does not come and go: a sequence
    /// that is decoded alone, token after token, is always ready, and would only lose.
    pub(super) fn until(
        &mut self,
        ready: &(impl Iterator<Item = (SlotId, bool)> + Clone),
        fixed: Duration,
        now: Instant,
    ) -> Option<Instant> {
        let until = self.expected(ready, fixed, now);
        self.waits_since = until.map(|_| self.waits_since.unwrap_or(now));
        until
    }

    /// A forward begins.
    pub(super) fn begins(&mut self) {
        self.waits_since = None;
    }

    fn expected(
        &self,
        ready: &(impl Iterator<Item = (SlotId, bool)> + Clone),
        fixed: Duration,
        now: Instant,
    ) -> Option<Instant> {
        let comes_and_goes = |slot: SlotId| self.slots.get(&slot).is_some_and(|it| it.seen > 0);
        let mut all = ready.clone();
        if all.next().is_none() || !ready.clone().all(|(slot, new)| new && comes_and_goes(slot)) {
            return None;
        }
        let limit = self.waits_since.unwrap_or(now) + fixed.mul_f64(PATIENCE);
        let is_away = |slot: &SlotId| ready.clone().all(|(busy, _)| busy != *slot);
        let expected = self.slots.iter().filter(|(slot, habit)| {
            habit.seen > 0
                && habit.expected() <= limit
                && now < habit.last_expected()
                && is_away(slot)
        });
        let last = expected.map(|(_, habit)| habit.last_expected()).max()?;
        Some(last.min(limit)).filter(|&until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORWARD: Duration = Duration::from_millis(10);

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Slots that left at `begin` and come back after so many milliseconds as a rule.
    fn after(begin: Instant, away: &[(u64, u64)]) -> Gather {
        let mut gather = Gather::default();
        for &(slot, usual) in away {
            for _ in 0..40 {
                gather.left(SlotId(slot), begin);
                gather.came(SlotId(slot), begin + ms(usual));
            }
            gather.left(SlotId(slot), begin);
        }
        gather
    }

    fn until(gather: &mut Gather, ready: &[u64], now: Instant) -> Option<Instant> {
        let ready = ready.iter().map(|&slot| (SlotId(slot), true));
        gather.until(&ready, FORWARD, now)
    }

    /// Whether two times are the same but for rounding.
    fn near(found: Option<Instant>, expected: Instant) -> bool {
        found.is_some_and(|found| {
            let apart = found.max(expected) - found.min(expected);
            apart < Duration::from_micros(10)
        })
    }

    #[test]
    fn who_is_about_to_come_back_is_waited_for() {
        let begin = Instant::now();
        let mut gather = after(begin, &[(1, 4), (2, 8), (3, 80)]);
        // The second comes at 8 ms as a rule, and is expected until 10; the third would be too late.
        let waits = until(&mut gather, &[1], begin + ms(4));
        assert!(near(waits, begin + ms(10)), "{waits:?}");
        // It has come.
        assert_eq!(until(&mut gather, &[1, 2], begin + ms(8)), None);
        // Later it is not expected any more.
        assert_eq!(until(&mut gather, &[1], begin + ms(11)), None);
    }

    /// However long the tasks have waited for the forward before.
    #[test]
    fn no_forward_waits_for_longer_than_one_costs() {
        let begin = Instant::now();
        let mut gather = after(begin, &[(1, 1), (2, 8), (3, 9), (4, 12)]);
        let now = begin + ms(1);
        // The fourth comes too late, the third may come until 11.25 ms, and ten are too many.
        let waits = until(&mut gather, &[1], now);
        assert!(near(waits, now + ms(9)), "{waits:?}");
        let waits = until(&mut gather, &[1, 2], begin + ms(8));
        assert!(near(waits, now + ms(9)), "{waits:?}");
        assert_eq!(until(&mut gather, &[1, 2], begin + ms(10)), None);
        // The next forward may wait anew.
        gather.begins();
        gather.left(SlotId(1), begin + ms(20));
        let waits = until(&mut gather, &[2], begin + ms(20));
        assert!(
            near(waits, begin + Duration::from_micros(21_250)),
            "{waits:?}"
        );
    }

    #[test]
    fn who_is_always_ready_does_not_wait() {
        let begin = Instant::now();
        let mut gather = after(begin, &[(1, 1), (2, 3)]);
        let now = begin + ms(1);
        let ready = [(SlotId(1), true), (SlotId(9), true)];
        assert_eq!(gather.until(&ready.into_iter(), FORWARD, now), None);
        let goes_on = [(SlotId(1), false)];
        assert_eq!(gather.until(&goes_on.into_iter(), FORWARD, now), None);
        assert_eq!(gather.until(&std::iter::empty(), FORWARD, now), None);
        assert!(until(&mut gather, &[1], now).is_some());
    }

    #[test]
    fn who_changed_its_course_or_is_gone_is_not_expected() {
        let begin = Instant::now();
        let mut gather = after(begin, &[(1, 2), (2, 3)]);
        gather.came(SlotId(2), begin + ms(300));
        gather.left(SlotId(2), begin);
        let now = begin + ms(2);
        assert_eq!(until(&mut gather, &[1], now), None);
        let mut gather = after(begin, &[(1, 2), (2, 3)]);
        assert!(until(&mut gather, &[1], now).is_some());
        gather.forget(SlotId(2));
        assert_eq!(until(&mut gather, &[1], now), None);
    }
}
