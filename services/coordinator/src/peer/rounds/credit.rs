//! Flow control of rounds that are answered in parts: how far the verifier is granted to go.

use wire::v1;
use wire::v1::verify_request::Request;

/// Number of parts (tokens or log probabilities) that a verifier may be ahead of what the client has read. The verifier
/// never waits if a round trip takes less time than half of them.
pub const PARTS_AHEAD: u32 = 256;

/// The grants of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    until: u32,
    /// Position at which the round ends; nothing beyond it needs a grant.
    end: u32,
}

/// A further grant.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    pub(super) request: v1::VerifyRequest,
    /// Whether the verifier had used up its grants, so that its time for an answer begins now.
    pub(super) was_awaited: bool,
}

impl Credit {
    /// Creates the first grant of a round that begins at position `taken` and ends at `end` at the latest.
    pub(super) fn new(taken: u32, end: u32) -> Self {
        let until = taken.saturating_add(PARTS_AHEAD);
        Self { until, end }
    }

    /// Returns the position up to which parts are granted.
    pub(super) fn until(self) -> u32 {
        self.until
    }

    /// Returns a further grant if the client has read half or more of the granted parts; `taken` is the position before
    /// which it has read all.
    pub(super) fn renewed(&mut self, taken: u32) -> Option<Renewal> {
        let left = self.until.saturating_sub(taken);
        if self.until >= self.end || left > PARTS_AHEAD / 2 {
            return None;
        }
        self.until = taken.saturating_add(PARTS_AHEAD);
        let until = self.until;
        Some(Renewal {
            request: Request::Grant(v1::Grant { until }).into(),
            was_awaited: left == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_granted_more_when_half_is_taken_and_nothing_beyond_the_end() {
        let mut credit = Credit::new(10, 1_000);
        assert_eq!(credit.until(), 10 + PARTS_AHEAD);
        assert!(credit.renewed(10 + PARTS_AHEAD / 2 - 1).is_none());
        let taken = 10 + PARTS_AHEAD / 2;
        let more = credit.renewed(taken).expect("half is taken");
        assert!(!more.was_awaited);
        assert_eq!(credit.until(), taken + PARTS_AHEAD);
        assert!(credit.renewed(taken).is_none(), "once");
        let more = credit.renewed(credit.until()).expect("all is taken");
        assert!(more.was_awaited);
        let mut short = Credit::new(0, PARTS_AHEAD);
        assert!(short.renewed(PARTS_AHEAD).is_none(), "the round is over");
    }
}
