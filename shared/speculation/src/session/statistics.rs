//! What a session counts.

use super::DraftBlock;
use super::{Origin, Peer};
use crate::verification::LastToken;

/// Counts of one request. Field names follow the JSON that users of other servers parse already.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Draft tokens verified, one entry a round that drafted.
    pub per_step_drafted: Vec<u32>,
    /// Draft tokens accepted in the same rounds.
    pub per_step_accepted: Vec<u32>,
    /// Forwards of the target model, one a round and one a token decoded alone.
    pub target_forwards: u32,
    /// Draft tokens taken from the drafter, all nodes of trees.
    pub drafted: u32,
    /// Forwards of the draft models: of one model one a level, and one for a distribution that was only looked at.
    pub draft_forwards: u32,
    /// The same by model, the largest first.
    pub draft_forwards_by_model: Vec<u32>,
    /// Output tokens emitted.
    pub emitted: u32,
    /// Draft tokens tested one by one, up to and including the first refused; a draft token behind a
    /// refused one is not.
    pub tested: u32,
    /// Draft tokens refused among them.
    pub refusals: u32,
    /// Tokens of the target's after a longest run of draft tokens, whatever the deferral rule said there.
    pub at_max_run: u32,
    /// Tokens decoded by the target alone for want of a drafter: no rule judged them.
    pub fallback_tokens: u32,
    /// Tokens decoded by the target alone because drafting did not pay.
    pub rested_tokens: u32,
    /// Sum of the known deferrals over the emitted positions.
    pub deferral_sum: f64,
    /// Number of emitted positions whose deferral is known.
    pub deferral_positions: u32,
    /// Draft tokens that were drafted and never emitted.
    pub discarded: u32,
    /// What was drafted or cost a forward of the target's, and stands neither among the tokens emitted nor
    /// among those discarded: the token that the target does not add after an accepted end token, one
    /// that it added beyond the token limit, and tokens that a stop string took back.
    pub withheld: u32,
    /// Requests sent again after a failure.
    pub retries: u32,
    /// Why and where the session went on without its drafter.
    pub fallbacks: Vec<Fallback>,
}

/// The session went on without a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The peer that was lost.
    pub peer: Peer,
    /// Output position.
    pub position: u32,
    /// What was known of it.
    pub reason: String,
}

impl Statistics {
    /// Records a draft block; `looked_ahead` if the distribution after it was looked at.
    pub(super) fn drafted(&mut self, answer: &DraftBlock, looked_ahead: bool) {
        self.drafted += answer.drafts.len() as u32;
        let assumed = [answer.drafts.levels() + u32::from(looked_ahead)];
        let forwards = match answer.forwards.as_slice() {
            [] => &assumed,
            forwards => forwards,
        };
        let by_model = &mut self.draft_forwards_by_model;
        by_model.resize(by_model.len().max(forwards.len()), 0);
        for (sum, &count) in by_model.iter_mut().zip(forwards) {
            *sum = sum.saturating_add(count);
            self.draft_forwards = self.draft_forwards.saturating_add(count);
        }
    }

    /// Records a verified block.
    pub(super) fn verified(&mut self, drafted: usize, accepted: usize, last: LastToken) {
        self.target_forwards += 1;
        self.withheld += u32::from(last == LastToken::AcceptedEnd);
        if drafted > 0 {
            let refusals = u32::from(last == LastToken::Recovered);
            self.per_step_drafted.push(drafted as u32);
            self.per_step_accepted.push(accepted as u32);
            self.discarded += (drafted - accepted) as u32;
            self.refusals += refusals;
            self.tested += accepted as u32 + refusals;
        }
    }

    /// Records how much of each of the next emitted positions was deferred to the target.
    pub(super) fn deferral(&mut self, shares: impl Iterator<Item = f32>) {
        for share in shares {
            self.deferral_sum += f64::from(share.clamp(0.0, 1.0));
            self.deferral_positions += 1;
        }
    }

    /// Rounds that drafted.
    pub fn num_spec_steps(&self) -> u32 {
        self.per_step_drafted.len() as u32
    }

    /// Draft tokens verified.
    pub fn num_draft_tokens(&self) -> u32 {
        self.per_step_drafted.iter().sum()
    }

    /// Draft tokens accepted.
    pub fn num_accepted_draft_tokens(&self) -> u32 {
        self.per_step_accepted.iter().sum()
    }

    /// `1 + accepted / rounds`; 1 if nothing was drafted.
    pub fn mean_acceptance_length(&self) -> f64 {
        let rounds = self.num_spec_steps().max(1);
        1.0 + f64::from(self.num_accepted_draft_tokens()) / f64::from(rounds)
    }

    /// `accepted / drafted`; 0 if nothing was drafted.
    pub fn draft_acceptance_rate(&self) -> f64 {
        let drafted = self.num_draft_tokens().max(1);
        f64::from(self.num_accepted_draft_tokens()) / f64::from(drafted)
    }

    /// Entry i counts the rounds that accepted exactly i draft tokens.
    pub fn acceptance_histogram(&self) -> Vec<u32> {
        let longest = self
            .per_step_drafted
            .iter()
            .max()
            .map_or(0, |&len| len as usize + 1);
        let mut histogram = vec![0; longest];
        for &accepted in &self.per_step_accepted {
            histogram[accepted as usize] += 1;
        }
        histogram
    }

    /// Refused draft tokens by tested ones; none if nothing was tested.
    pub fn rejection_rate(&self) -> Option<f64> {
        ratio(f64::from(self.refusals), self.tested)
    }

    /// Mean deferral over the emitted positions that were judged; none where the method has no
    /// deferral, or the drafter was never there. Tokens that the target decoded for want of a drafter
    /// are counted apart ([`Statistics::fallback_tokens`]).
    pub fn deferral_rate(&self) -> Option<f64> {
        ratio(self.deferral_sum, self.deferral_positions)
    }

    /// Forwards of the target model by emitted token; none if nothing was emitted.
    pub fn verification_rate(&self) -> Option<f64> {
        ratio(f64::from(self.target_forwards), self.emitted)
    }
}

fn ratio(part: f64, of: u32) -> Option<f64> {
    (of > 0).then(|| part / f64::from(of))
}

impl From<LastToken> for Origin {
    fn from(last: LastToken) -> Self {
        match last {
            LastToken::Recovered => Self::Recovered,
            LastToken::Bonus => Self::Bonus,
            LastToken::AcceptedEnd => Self::Accepted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_their_definitions() {
        let mut statistics = Statistics::default();
        for (drafted, accepted, last) in [
            (4, 4, LastToken::Bonus),
            (4, 0, LastToken::Recovered),
            (4, 2, LastToken::Recovered),
            (0, 0, LastToken::Bonus),
            (1, 1, LastToken::AcceptedEnd),
        ] {
            statistics.verified(drafted, accepted, last);
        }
        assert_eq!(statistics.num_spec_steps(), 4);
        assert_eq!(statistics.mean_acceptance_length(), 2.75);
        assert_eq!(statistics.draft_acceptance_rate(), 7.0 / 13.0);
        assert_eq!(statistics.acceptance_histogram(), [1, 1, 1, 0, 1]);
        assert_eq!((statistics.target_forwards, statistics.discarded), (5, 6));
        // Four and one accepted, none and a refusal, two and a refusal.
        assert_eq!((statistics.refusals, statistics.tested), (2, 9));
        assert_eq!(statistics.rejection_rate(), Some(2.0 / 9.0));
        assert_eq!(statistics.withheld, 1);
        statistics.emitted = 10;
        assert_eq!(statistics.verification_rate(), Some(0.5));
    }

    #[test]
    fn deferral_is_a_mean_over_emitted_positions() {
        let mut statistics = Statistics {
            fallback_tokens: 1,
            ..Statistics::default()
        };
        assert_eq!(statistics.deferral_rate(), None);
        statistics.deferral([0.0, 1.0 + 1e-5, 0.25].into_iter());
        assert_eq!(statistics.deferral_rate(), Some(1.25 / 3.0));
    }

    #[test]
    fn nothing_drafted_gives_numbers_too() {
        let statistics = Statistics::default();
        assert_eq!(statistics.mean_acceptance_length(), 1.0);
        assert_eq!(statistics.draft_acceptance_rate(), 0.0);
        assert!(statistics.acceptance_histogram().is_empty());
        assert_eq!(statistics.rejection_rate(), None);
        assert_eq!(statistics.verification_rate(), None);
    }
}
