//! How likely each position of a draft is to be accepted once it is reached, as measured.
//!
//! A draft grows worse the longer it gets, or better, or ends where a text does: one ratio for all positions
//! is right for none of them. What is measured are conditional probabilities; their products are the
//! probabilities that a draft survives up to a position.

use smart_default::SmartDefault;

/// Share of an earlier round's weight that is left after each round, in a session: about 40 rounds count.
const MEMORY: f64 = 0.975;

/// Share of an earlier round's weight that is left after each round, in the survival of a kind: about 100 rounds count.
const LASTING: f64 = 0.99;

/// What is assumed before anything is known of acceptance, as tokens accepted and refused. It is never
/// forgotten, so that a few refusals at the beginning decide nothing.
const ACCEPTED: f64 = 2.1;
const REFUSED: f64 = 0.9;

/// Rounds that reached a position for which the ratio of all positions counts there: a position seldom reached
/// is taken to be like the others.
const SHARED: f64 = 3.0;

/// Rounds for which the acceptance of the kind counts in a session's own: a text may differ from others, but few
/// rounds do not show it.
const PRIOR: f64 = 12.0;

/// Share of a session's own acceptance that is left after each token which it rests: the text goes on meanwhile, and
/// what ended drafting may have been chance.
const RESTED: f64 = 0.999;

/// What became of the draft token at a position, in rounds that reached it; older ones count less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PositionCounts {
    accepted: f64,
    refused: f64,
}

/// Acceptance by position, the first draft token of a round at 0. The default is that of a session.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub(super) struct Survival {
    #[default(MEMORY)]
    memory: f64,
    positions: Vec<PositionCounts>,
}

impl Survival {
    /// That of all sessions of a kind.
    pub(super) fn lasting() -> Self {
        Self {
            memory: LASTING,
            ..Self::default()
        }
    }

    /// Takes note of a round of which `accepted` draft tokens stood, the next one refused or not there.
    pub(super) fn observe(&mut self, accepted: u32, refused: bool) {
        for position in &mut self.positions {
            position.accepted *= self.memory;
            position.refused *= self.memory;
        }
        let accepted = accepted as usize;
        let reached = accepted + usize::from(refused);
        if self.positions.len() < reached {
            self.positions.resize(reached, PositionCounts::default());
        }
        for position in &mut self.positions[..accepted] {
            position.accepted += 1.0;
        }
        if refused {
            self.positions[accepted].refused += 1.0;
        }
    }

    /// Forgets a part of what was measured, while a session rests for `tokens`.
    pub(super) fn rest(&mut self, tokens: u32) {
        let left = RESTED.powi(tokens.cast_signed());
        for position in &mut self.positions {
            position.accepted *= left;
            position.refused *= left;
        }
    }

    /// The probability that a draft token stands whose predecessors do, wherever it is: `accepted / (accepted +
    /// refused)`, the maximum likelihood estimate where blocks are cut off; never `accepted / drafted`, which
    /// falls with the length.
    pub(super) fn of_all(&self) -> f64 {
        let sum = |of: fn(&PositionCounts) -> f64| self.positions.iter().map(of).sum::<f64>();
        let accepted = sum(|position| position.accepted) + ACCEPTED;
        accepted / (accepted + sum(|position| position.refused) + REFUSED)
    }

    /// [`Survival::of_all`] of a session, with that of its kind as the prior.
    pub(super) fn of_all_within(&self, kind: &Self) -> f64 {
        let sum = |of: fn(&PositionCounts) -> f64| self.positions.iter().map(of).sum::<f64>();
        let (accepted, refused) = (
            sum(|position| position.accepted),
            sum(|position| position.refused),
        );
        (accepted + PRIOR * kind.of_all()) / (accepted + refused + PRIOR)
    }

    /// [`Survival::by_position`] of a session, with that of its kind as the prior.
    pub(super) fn by_position_within(&self, kind: &Self) -> impl Iterator<Item = f64> {
        let beyond = std::iter::repeat(PositionCounts::default());
        let own = self.positions.iter().copied().chain(beyond);
        own.zip(kind.by_position()).map(|(own, prior)| {
            (own.accepted + PRIOR * prior) / (own.accepted + own.refused + PRIOR)
        })
    }

    /// The probability that the draft token at each position stands if those before it do, without end.
    pub(super) fn by_position(&self) -> impl Iterator<Item = f64> {
        let of_all = self.of_all();
        let beyond = std::iter::repeat(PositionCounts::default());
        let positions = self.positions.iter().copied().chain(beyond);
        positions.map(move |PositionCounts { accepted, refused }| {
            (accepted + SHARED * of_all) / (accepted + refused + SHARED)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities of the first positions.
    fn first(survival: &Survival, count: usize) -> Vec<f64> {
        survival.by_position().take(count).collect()
    }

    #[test]
    fn before_any_round_all_positions_are_alike() {
        let assumed = ACCEPTED / (ACCEPTED + REFUSED);
        assert_eq!(first(&Survival::default(), 3), [assumed; 3]);
    }

    #[test]
    fn a_position_counts_where_a_round_reached_it() {
        let mut survival = Survival::default();
        for _ in 0..200 {
            survival.observe(2, true);
        }
        let found = first(&survival, 4);
        assert!(
            found[0] > 0.9 && found[1] > 0.9 && found[2] < 0.2,
            "{found:?}"
        );
        // Nothing is known of the fourth.
        assert!((found[3] - survival.of_all()).abs() < 1e-12);
        // What ended or was cut off refused nothing.
        let mut whole = Survival::default();
        whole.observe(2, false);
        assert!(first(&whole, 2).iter().all(|&accept| accept > 0.7));
    }

    #[test]
    fn a_session_begins_with_its_kinds_and_goes_its_own_way() {
        let mut kind = Survival::lasting();
        for _ in 0..300 {
            kind.observe(3, true);
        }
        let mut own = Survival::default();
        let at = |own: &Survival| own.by_position_within(&kind).take(5).collect::<Vec<_>>();
        let all = first(&kind, 5);
        let begins = at(&own);
        assert!(all.iter().zip(&begins).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!((own.of_all_within(&kind) - kind.of_all()).abs() < 1e-12);
        for _ in 0..40 {
            own.observe(0, true);
        }
        let now = at(&own);
        assert!(now[0] < 0.4 && (now[4] - all[4]).abs() < 1e-12, "{now:?}");
        assert!(own.of_all_within(&kind) < 0.4);
    }

    /// A few rounds without luck say little where hundreds said otherwise.
    #[test]
    fn chance_does_not_turn_a_session_from_its_kind() {
        let mut kind = Survival::lasting();
        let mut own = Survival::default();
        for round in 0..300 {
            kind.observe(1, round % 2 == 0);
        }
        let before = own.by_position_within(&kind).next();
        for _ in 0..3 {
            own.observe(0, true);
        }
        let after = own.by_position_within(&kind).next();
        let share = after.expect("a position") / before.expect("a position");
        assert!(share > 0.75, "{share}");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut survival = Survival::default();
        for _ in 0..100 {
            survival.observe(0, true);
        }
        assert!(first(&survival, 1)[0] < 0.2);
        for _ in 0..100 {
            survival.observe(1, false);
        }
        assert!(first(&survival, 1)[0] > 0.9);
    }
}
