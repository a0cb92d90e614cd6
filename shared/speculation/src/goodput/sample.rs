//! Measures how long the target takes for a token when it decodes alone, although tokens come in bursts.

use std::time::Duration;

use super::price::Price;

/// Tokens of a sample. The first token of a burst comes late and the others at once, so only the mean time of several
/// tokens is a measurement.
pub(super) const SAMPLE: u32 = 8;

/// Shortest mean time of a token in a sample, in forwards of the verifier. No token takes much less than a forward;
/// tokens that waited for a slow client come faster and are not counted.
const SHORTEST: f64 = 0.7;

/// Longest time of a token in a sample, in forwards times the turns that sessions take in a full batch. A longer time
/// is that of a client that did not read.
const LONGEST: f64 = 32.0;

/// Tokens that the target decoded alone, and the seconds that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    tokens: u32,
    seconds: f64,
}

impl Sample {
    /// Adds `tokens` that took `took` at a verifier with this load. Returns the mean seconds of a token once the sample
    /// is complete, and begins the next one; drops a sample with tokens that a client held up.
    pub(super) fn add(&mut self, tokens: u32, took: Duration, verifier: &Price) -> Option<f64> {
        let took = took.as_secs_f64();
        let longest = LONGEST * verifier.forward() * verifier.turns() * f64::from(tokens);
        if longest > 0.0 && took > longest {
            *self = Self::default();
            return None;
        }
        self.tokens += tokens;
        self.seconds += took;
        if self.tokens < SAMPLE {
            return None;
        }
        let Self { tokens, seconds } = std::mem::take(self);
        let each = seconds / f64::from(tokens);
        (each >= SHORTEST * verifier.forward()).then_some(each)
    }
}
