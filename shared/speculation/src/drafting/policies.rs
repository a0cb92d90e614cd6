//! The policies by which a drafter stops, each described in one place.
//!
//! A policy is a [`StopPolicy`] and a line in [`POLICIES`]. Names and forms on the command line, ranges, listings,
//! the wire, what a drafter computes and what it must have are read from there.

use crate::confidence::Confidence;

/// Every policy, in the order of listings.
pub const POLICIES: &[&StopPolicy] = &[&CONFIDENCE, &ENTROPY, &LEARNED];

/// What there is to know of a policy. Policies are equal if their names are.
#[derive(derive_more::Debug)]
#[debug("StopPolicy({name})")]
pub struct StopPolicy {
    /// The name that requests give before the colon.
    pub name: &'static str,
    /// The name with a letter or word for the threshold, as listings show it.
    pub form: &'static str,
    /// When drafting stops, in one line.
    pub summary: &'static str,
    /// What the threshold is, as messages call it: "a probability".
    pub threshold: &'static str,
    /// The least and the largest threshold, both allowed.
    pub range: (f64, f64),
    /// The test, with what it reads.
    pub stops: Stops,
}

/// When a policy decides whether drafting stops, and what it reads. No policy sees a token that was drawn, so that
/// what is drafted stays a sample of the distribution.
pub enum Stops {
    /// Before a token is drawn: from the confidence of the unscaled distribution there, and the threshold.
    Before {
        /// The part of the confidence that the test reads.
        reads: Reads,
        /// Whether the token is not drawn.
        test: fn(Confidence<f64>, f64) -> bool,
    },
    /// After a token was drawn: from the predicted probability that all tokens before it are accepted, and the
    /// threshold. An acceptance head predicts it.
    After(fn(f64, f64) -> bool),
}

/// A part of a [`Confidence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The largest probability.
    Max,
    /// The entropy.
    Entropy,
}

impl StopPolicy {
    /// The policy that is called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        POLICIES.iter().copied().find(|policy| policy.name == name)
    }
}

impl PartialEq for StopPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Stops before a token whose unscaled distribution has its maximum below the threshold: the fallback policy of Kim et
/// al., "Speculative Decoding with Big Little Decoder" (2023); in cascades Chow's rule.
pub const CONFIDENCE: StopPolicy = StopPolicy {
    name: "confidence",
    form: "confidence:MIN",
    summary: "stop before a token where the draft distribution's maximum is below this",
    threshold: "a probability",
    range: (0.0, 1.0),
    stops: Stops::Before {
        reads: Reads::Max,
        test: |confidence, least| confidence.max < least,
    },
};

/// Stops before a token whose unscaled distribution has an entropy above the threshold, in nats. The largest
/// threshold is beyond the entropy of a distribution over every token id there can be.
pub const ENTROPY: StopPolicy = StopPolicy {
    name: "entropy",
    form: "entropy:MAX",
    summary: "stop before a token where the draft distribution's entropy is above this, in nats",
    threshold: "an entropy in nats",
    range: (0.0, 100.0),
    stops: Stops::Before {
        reads: Reads::Entropy,
        test: |confidence, most| confidence.entropy > most,
    },
};

/// Stops after a token where the predicted probability that one of the tokens before it is refused exceeds the
/// threshold h: Huang et al., "SpecDec++: Boosting Speculative Decoding via Adaptive Candidate Lengths" (2024),
/// Algorithm 2.
pub const LEARNED: StopPolicy = StopPolicy {
    name: "specdec++",
    form: "specdec++:H",
    summary: "stop where a trained head says that a refusal is likelier than this",
    threshold: "a threshold",
    range: (0.0, 1.0),
    stops: Stops::After(|all_accepted, threshold| 1.0 - all_accepted > threshold),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_name_which_its_form_begins_with() {
        for (at, &policy) in POLICIES.iter().enumerate() {
            assert_eq!(StopPolicy::find(policy.name), Some(policy));
            assert!(POLICIES[..at].iter().all(|&other| other != policy));
            assert!(policy.form.starts_with(&format!("{}:", policy.name)));
            assert!(policy.range.0 < policy.range.1);
        }
        assert_eq!(StopPolicy::find("fixed"), None);
    }
}
