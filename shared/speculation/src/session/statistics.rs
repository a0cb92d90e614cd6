//! What a session counts.

use super::{Origin, Peer};

/// Counts of one request. Field names follow the JSON that users of other servers parse already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Draft tokens verified, one entry a round that drafted.
    pub per_step_drafted: Vec<u32>,
    /// Draft tokens accepted in the same rounds.
    pub per_step_accepted: Vec<u32>,
    /// Forwards of the target model, one a round and one a token decoded alone.
    pub target_forwards: u32,
    /// Draft tokens that were drafted and not emitted.
    pub discarded: u32,
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
    /// Records a verified block.
    pub(super) fn verified(&mut self, drafted: usize, accepted: usize) {
        self.target_forwards += 1;
        if drafted > 0 {
            self.per_step_drafted.push(drafted as u32);
            self.per_step_accepted.push(accepted as u32);
            self.discarded += (drafted - accepted) as u32;
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
}

impl From<crate::verification::LastToken> for Origin {
    fn from(last: crate::verification::LastToken) -> Self {
        use crate::verification::LastToken;
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
        for (drafted, accepted) in [(4, 4), (4, 0), (4, 2), (0, 0)] {
            statistics.verified(drafted, accepted);
        }
        assert_eq!(statistics.num_spec_steps(), 3);
        assert_eq!(statistics.mean_acceptance_length(), 3.0);
        assert_eq!(statistics.draft_acceptance_rate(), 0.5);
        assert_eq!(statistics.acceptance_histogram(), [1, 0, 1, 0, 1]);
        assert_eq!((statistics.target_forwards, statistics.discarded), (4, 6));
    }

    #[test]
    fn nothing_drafted_gives_numbers_too() {
        let statistics = Statistics::default();
        assert_eq!(statistics.mean_acceptance_length(), 1.0);
        assert_eq!(statistics.draft_acceptance_rate(), 0.0);
        assert!(statistics.acceptance_histogram().is_empty());
    }
}
