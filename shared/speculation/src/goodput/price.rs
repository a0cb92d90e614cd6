//! The load that a peer reports, from which others' waiting time follows.

use smart_default::SmartDefault;

/// Upper bounds of what a peer can report: seconds that a row adds to a forward, and sequences or sessions.
const LONGEST: f64 = 10.0;
const MOST: f64 = 65_536.0;

/// The load of a peer's engine, which the peer reports with an answer. A false report costs speed and changes no
/// token. The default is that of a peer that reports none: no other sequence waits.
#[derive(Clone, Copy, Debug, PartialEq, SmartDefault)]
pub struct Price {
    /// Seconds that one more row adds to a forward.
    pub(super) row: f64,
    #[default(1.0)]
    sequences: f64,
    /// The number of sessions that the peer serves.
    #[default(1.0)]
    pub(super) sessions: f64,
    /// Seconds of a forward; 0 if the peer does not report it.
    pub(super) forward: f64,
}

impl Price {
    /// `row`: seconds that one more row adds to a forward; `sequences`: sequences in the last forward; `sessions`:
    /// sessions that the peer serves; `forward`: seconds of a forward. A value that is out of range is replaced by
    /// the nearest in range, NaN by the least.
    pub fn new(row: f64, sequences: f64, sessions: f64, forward: f64) -> Self {
        Self {
            row: within(row, 0.0, LONGEST),
            sequences: within(sequences, 1.0, MOST),
            sessions: within(sessions, 1.0, MOST),
            forward: within(forward, 0.0, LONGEST),
        }
    }

    /// The number of sequences that share a forward with the session's own.
    pub(super) fn others(&self) -> f64 {
        self.sequences - 1.0
    }

    /// The number of forwards after which each session has had its turn, if all want one.
    pub(super) fn turns(&self) -> f64 {
        (self.sessions / self.sequences).max(1.0)
    }

    /// The session's own share of a forward, in seconds.
    pub(super) fn share(&self) -> f64 {
        self.forward / self.sequences
    }

    /// The binary logarithm of the number of sessions, rounded down.
    pub(super) fn load_class(&self) -> usize {
        libm::log2(self.sessions) as usize
    }
}

/// The load of both peers, as far as they reported it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loads {
    pub(super) drafter: Price,
    pub(super) verifier: Price,
    /// Whether both compute on the same processors.
    pub(super) share_processors: bool,
}

impl Loads {
    /// Seconds that other sequences wait for one more row at the verifier, and for one more draft token: those that
    /// share the drafter's forwards, and the verifier's where both compute on the same processors.
    pub(super) fn waits(&self) -> (f64, f64) {
        let Self {
            drafter, verifier, ..
        } = self;
        let stolen = if self.share_processors {
            verifier.others() * drafter.share()
        } else {
            0.0
        };
        let row = verifier.others() * verifier.row;
        (row, drafter.others() * drafter.row + stolen)
    }
}

/// `value` within `least..=most`; `least` if it is no number.
fn within(value: f64, least: f64, most: f64) -> f64 {
    if value.is_nan() {
        return least;
    }
    value.clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_claim_is_beyond_measure() {
        for claim in [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0] {
            assert_eq!(Price::new(claim, claim, claim, claim), Price::default());
        }
        let most = Price::new(f64::INFINITY, 1e300, f64::INFINITY, 1e9);
        assert_eq!((most.row, most.others()), (LONGEST, MOST - 1.0));
        assert_eq!(most.load_class(), 16);
    }

    #[test]
    fn loads_are_told_apart_by_powers_of_two() {
        let class = |sessions| Price::new(0.0, 1.0, sessions, 0.0).load_class();
        let classes: Vec<_> = [1.0, 2.0, 3.0, 4.0, 15.0, 16.0, 64.0].map(class).into();
        assert_eq!(classes, [0, 1, 1, 2, 3, 4, 6]);
    }
}
