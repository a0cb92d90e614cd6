//! How far a verifier may go on answering a round in parts.

use wire::v1;
use wire::v1::verify_request::Request;

/// Parts, tokens or log probabilities, that a verifier may be ahead of what the client took. Enough that it need not
/// wait where the round trip is shorter than the time of half of them.
pub const PARTS_AHEAD: u32 = 256;

/// What a verifier was granted in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    until: u32,
    /// Where the round ends: what lies beyond needs no grant.
    end: u32,
}

/// More for the verifier.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    pub(super) request: v1::VerifyRequest,
    /// Whether the verifier had to wait for it: its time begins now.
    pub(super) was_awaited: bool,
}

impl Credit {
    /// What is granted with a round that begins at position `taken` and ends at `end` at the latest.
    pub(super) fn new(taken: u32, end: u32) -> Self {
        let until = taken.saturating_add(PARTS_AHEAD);
        Self { until, end }
    }

    /// The position up to which parts may come.
    pub(super) fn until(self) -> u32 {
        self.until
    }

    /// What to grant once the client took all parts before `taken`: half of what it may be ahead, or more.
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
