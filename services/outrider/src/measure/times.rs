//! The time of rounds, split into its phases.

use wire::v1::{RoundReport, Timing};

/// Sums over rounds of the time in each phase, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTimes {
    /// Rounds.
    pub counted: f64,
    /// In forwards of draft models.
    pub draft_forward: f64,
    /// In the drafter, outside of forwards.
    pub draft_rest: f64,
    /// In forwards of the target model.
    pub verify_forward: f64,
    /// In the verifier, outside of forwards.
    pub verify_rest: f64,
    /// Between the services.
    pub wire: f64,
}

impl RoundTimes {
    pub(super) fn add(&mut self, other: &Self) {
        self.counted += other.counted;
        self.draft_forward += other.draft_forward;
        self.draft_rest += other.draft_rest;
        self.verify_forward += other.verify_forward;
        self.verify_rest += other.verify_rest;
        self.wire += other.wire;
    }

    pub(super) fn of(round: &RoundReport) -> Self {
        let ms = |us: u32| f64::from(us) / 1e3;
        let (drafter, verifier) = (
            round.drafter.unwrap_or_default(),
            round.verifier.unwrap_or_default(),
        );
        let inside = |timing: &Timing| ms(timing.total_us);
        Self {
            counted: 1.0,
            draft_forward: ms(drafter.forward_us),
            draft_rest: inside(&drafter) - ms(drafter.forward_us),
            verify_forward: ms(verifier.forward_us),
            verify_rest: inside(&verifier) - ms(verifier.forward_us),
            wire: ms(round.draft_us) - inside(&drafter) + ms(round.verify_us) - inside(&verifier),
        }
    }
}
