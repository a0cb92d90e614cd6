//! The policies by which a drafter stops, each described in one place.
//!
//! A policy is a [`StopPolicy`] and a line in [`POLICIES`]. Names and forms on the command line, ranges, listings,
//! the wire, what a drafter computes and what it must have are read from there.

mod thresholds;

use std::fmt;

pub use thresholds::{CONFIDENCE, ENTROPY, LEARNED};

use crate::confidence::Confidence;

/// Every policy, in the order of listings.
pub const POLICIES: &[&StopPolicy] = &[&CONFIDENCE, &ENTROPY, &LEARNED];

/// What there is to know of a policy. Policies are equal if their names are.
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

impl fmt::Debug for StopPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StopPolicy({})", self.name)
    }
}

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
