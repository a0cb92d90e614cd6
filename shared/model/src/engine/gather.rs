//! A forward waits a moment for sequences that are about to come back, so that they share it.
//!
//! A verifier's session leaves after each block and comes back with the next one. A forward of one block takes about
//! as long as one of several. Sessions that come back one after the other would each get a forward of their own and
//! wait for the forwards of the others. A wait that is shorter than a forward brings them together, and from then on
//! they leave and come back together.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::task::SlotId;

/// Longest wait of a forward, as a share of its fixed cost.
const PATIENCE: f64 = 0.9;

/// A sequence is expected until it is late by this share of its usual absence.
const GRACE: f64 = 0.25;

/// Weight of the latest absence in the usual one.
const LATEST: f64 = 0.3;

/// An absence that is longer or shorter than the usual one by this factor replaces it.
const CHANGED: f64 = 4.0;

/// When each slot's sequence is expected back.
#[derive(Debug, Default)]
pub(super) struct Gather {
    slots: HashMap<SlotId, Habit>,
    /// The latest usual absence of any slot, in seconds. A slot that has not come back yet is assumed to take as
    /// long.
    usual: f64,
    /// When the next forward began to wait, if it waits.
    waits_since: Option<Instant>,
}

/// How long a slot's sequence stays away.
#[derive(Clone, Copy, Debug)]
struct Habit {
    left: Instant,
    /// Its usual absence, in seconds.
    usual: f64,
    /// How often it came back after about that time.
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
            // No forward waits for it until it has come back after such a time again.
            (habit.usual, habit.seen) = (away, 0);
        } else if habit.seen == 0 || away * CHANGED < habit.usual {
            (habit.usual, habit.seen) = (away, 1);
        } else {
            habit.usual += LATEST * (away - habit.usual);
            habit.seen += 1;
            self.usual = habit.usual;
        }
    }

    /// The slot was freed.
    pub(super) fn forget(&mut self, slot: SlotId) {
        self.slots.remove(&slot);
    }

    /// Returns until when the next forward waits for more tasks; none if it begins now. `ready` are the tasks that it
    /// has, each with whether it is new, that is, has had no forward yet. `fixed` is the part of a forward's time
    /// that does not depend on its rows.
    ///
    /// A forward waits for less than `fixed`, and only if all of its tasks are new and their sequences come and go. A
    /// sequence that decodes token after token is always ready, so a wait would only delay it.
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
        // The second usually comes back at 8 ms and is expected until 10 ms. The third comes back too late.
        let waits = until(&mut gather, &[1], begin + ms(4));
        assert!(near(waits, begin + ms(10)), "{waits:?}");
        // The second has come back.
        assert_eq!(until(&mut gather, &[1, 2], begin + ms(8)), None);
        // At 11 ms the second is not expected any more.
        assert_eq!(until(&mut gather, &[1], begin + ms(11)), None);
    }

    /// The wait of a forward counts from its own start, however long its tasks waited for the forward before.
    #[test]
    fn no_forward_waits_for_longer_than_one_costs() {
        let begin = Instant::now();
        let mut gather = after(begin, &[(1, 1), (2, 8), (3, 9), (4, 12)]);
        let now = begin + ms(1);
        // The fourth comes back too late. The third is expected until 11.25 ms, but the wait ends after 9 ms.
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
