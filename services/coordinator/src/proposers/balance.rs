//! Whether the drafts of a drafter are worth their way, in one request.

/// Processor time that a message takes from others on its way through the coordinator and at the verifier, in milliseconds.
pub(super) const ON_THE_WAY: f32 = 0.2;

/// Forwards until it is known whether drafts pay, and until they are tried again where they did not.
const KNOWN: u32 = 32;
const RESTS: u32 = 256;

/// Weight of the latest forward in means.
const LATEST: f32 = 0.05;

/// What a drafter's drafts bring and take, over the last twenty forwards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Balance {
    /// Milliseconds of forwards that a forward's accepted drafts saved.
    saved: f32,
    /// Messages of drafts between two forwards.
    messages: f32,
    /// Messages since the last forward.
    came: u32,
    /// Forwards since drafts first came, or since the drafter was told to rest.
    forwards: u32,
    is_resting: bool,
}

impl Balance {
    /// A message of drafts came.
    pub(super) fn came(&mut self) {
        self.came += 1;
    }

    /// Records a forward that accepted so many of the drafter's drafts, each of which saved `forward_ms`.
    pub(super) fn forward(&mut self, accepted: u32, forward_ms: f32) {
        let came = std::mem::take(&mut self.came);
        // A drafter that is still reading the text has not shown anything.
        if self.forwards == 0 && came == 0 && !self.is_resting {
            return;
        }
        self.forwards += 1;
        if self.is_resting {
            if self.forwards >= RESTS {
                *self = Self::default();
            }
            return;
        }
        self.saved += LATEST * (accepted as f32 * forward_ms - self.saved);
        self.messages += LATEST * (came as f32 - self.messages);
        if self.forwards >= KNOWN && self.saved < ON_THE_WAY * self.messages {
            (self.is_resting, self.forwards) = (true, 0);
        }
    }

    /// Whether the drafter is to rest.
    pub(super) fn is_resting(&self) -> bool {
        self.is_resting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forwards, of so many milliseconds, with two messages before each and an accepted draft in each `nth`; how many of
    /// them the drafter rested.
    fn rested(forwards: u32, forward_ms: f32, nth: u32) -> u32 {
        let mut balance = Balance::default();
        let mut rested = 0;
        for forward in 0..forwards {
            if !balance.is_resting() {
                balance.came();
                balance.came();
            }
            balance.forward(u32::from(forward % nth == 0), forward_ms);
            rested += u32::from(balance.is_resting());
        }
        rested
    }

    #[test]
    fn a_drafter_rests_where_its_messages_take_longer_than_they_save() {
        assert_eq!(rested(2_000, 30.0, 10), 0);
        assert_eq!(rested(2_000, 1.0, 1), 0);
        let rests = rested(2_000, 1.0, 10);
        assert!(rests > 1_600, "{rests}");
        // It is tried again.
        assert!(rests < 2_000 - KNOWN, "{rests}");
        assert!(rested(2_000, 30.0, 1_000_000) > 1_500);
    }

    #[test]
    fn a_drafter_is_judged_from_its_first_drafts_on() {
        let mut balance = Balance::default();
        for _ in 0..1_000 {
            balance.forward(0, 30.0);
        }
        for forward in 0..10 * KNOWN {
            balance.came();
            balance.forward(u32::from(forward % 3 == 2), 30.0);
            assert!(!balance.is_resting(), "{forward}");
        }
    }

    #[test]
    fn who_says_nothing_costs_nothing() {
        let mut balance = Balance::default();
        for _ in 0..1_000 {
            balance.forward(0, 1.0);
            assert!(!balance.is_resting());
        }
    }
}
