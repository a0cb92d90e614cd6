//! What a peer says of its load, and what a draft token costs others there.

/// Longest that a row is taken to add to a forward, in seconds, and most sequences that a forward is taken to have:
/// what a peer claims beyond is no measurement.
const LONGEST: f64 = 10.0;
const MOST: f64 = 65_536.0;

/// What a peer's engine says of its load with an answer. Whatever it claims can cost speed and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    row: f64,
    sequences: f64,
    sessions: f64,
    forward: f64,
}

impl Default for Price {
    /// A peer that says nothing: nobody else waits for it.
    fn default() -> Self {
        Self {
            row: 0.0,
            sequences: 1.0,
            sessions: 1.0,
            forward: 0.0,
        }
    }
}

impl Price {
    /// `row`: seconds that one more row adds to a forward; `sequences`: in the last forward; `sessions`: served by the
    /// peer at the moment; `forward`: seconds of a forward. What is no number, negative or beyond all measure counts for
    /// the nearest that can be.
    pub fn new(row: f64, sequences: f64, sessions: f64, forward: f64) -> Self {
        Self {
            row: within(row, 0.0, LONGEST),
            sequences: within(sequences, 1.0, MOST),
            sessions: within(sessions, 1.0, MOST),
            forward: within(forward, 0.0, LONGEST),
        }
    }

    /// Seconds that one more row adds to a forward.
    pub fn row(&self) -> f64 {
        self.row
    }

    /// Sessions that the peer serves.
    pub(super) fn sessions(&self) -> f64 {
        self.sessions
    }

    /// Sequences that wait for a forward beside the session's own.
    pub(super) fn others(&self) -> f64 {
        self.sequences - 1.0
    }

    /// Forwards in which each session has its turn, if all want one.
    pub(super) fn turns(&self) -> f64 {
        (self.sessions / self.sequences).max(1.0)
    }

    /// Seconds of a forward; 0 if the peer does not say.
    pub(super) fn forward(&self) -> f64 {
        self.forward
    }

    /// The share of a forward that was the session's own, in seconds.
    pub(super) fn share(&self) -> f64 {
        self.forward / self.sequences
    }

    /// The power of two of the sessions that the peer serves, rounded down.
    pub(super) fn load_class(&self) -> usize {
        libm::log2(self.sessions) as usize
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
        assert_eq!((most.row(), most.others()), (LONGEST, MOST - 1.0));
        assert_eq!(most.load_class(), 16);
    }

    #[test]
    fn loads_are_told_apart_by_powers_of_two() {
        let class = |sessions| Price::new(0.0, 1.0, sessions, 0.0).load_class();
        let classes: Vec<_> = [1.0, 2.0, 3.0, 4.0, 15.0, 16.0, 64.0].map(class).into();
        assert_eq!(classes, [0, 1, 1, 2, 3, 4, 6]);
    }
}
