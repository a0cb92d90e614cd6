//! YaRN (Peng et al. 2023): frequencies of few turns in the original context are divided, those of many are kept, and
//! between them there is a ramp over the pairs of dimensions. Scores are sharpened a little to make up for it.

use std::f64::consts::PI;

/// How YaRN stretches frequencies, as transformers computes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Yarn {
    /// Divisor of the low frequencies.
    pub factor: f64,
    /// Context the frequencies were first trained on, in tokens.
    pub original_context_len: usize,
    /// Turns in the original context from which on a frequency is kept.
    pub beta_fast: f64,
    /// Turns up to which it is divided.
    pub beta_slow: f64,
    /// Whether the ramp's ends are rounded outwards to whole pairs of dimensions; false in few models.
    pub truncate: bool,
    /// The factor of cosines and sines.
    pub attention_factor: f32,
}

impl Yarn {
    /// Turns from which on a frequency is kept, where nothing else is said.
    pub(crate) const BETA_FAST: f64 = 32.0;
    /// Turns up to which it is divided.
    pub(crate) const BETA_SLOW: f64 = 1.0;

    /// What cosines and sines are multiplied by where nothing else is said, of frequencies divided by `factor`; `scale`
    /// is 1 but in models that say otherwise.
    pub(crate) fn attention(factor: f64, scale: f64) -> f64 {
        if factor <= 1.0 {
            return 1.0;
        }
        0.1 * scale * factor.ln() + 1.0
    }

    /// Longest sequence that the frequencies are stretched to, in tokens.
    pub(crate) fn context_len(&self) -> usize {
        (self.original_context_len as f64 * self.factor) as usize
    }

    /// What pair `i` of `dims` dimensions, whose frequency is `frequency` by the base `theta`, turns by each position.
    pub(super) fn stretched(&self, i: usize, frequency: f64, theta: f64, dims: usize) -> f64 {
        let (low, high) = self.ramp(theta, dims);
        let divided = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
        frequency / self.factor * divided + frequency * (1.0 - divided)
    }

    /// The pairs of dimensions at which the ramp begins and ends.
    fn ramp(&self, theta: f64, dims: usize) -> (f64, f64) {
        let original = self.original_context_len as f64;
        // The pair whose frequency makes so many turns in the original context.
        let pair_of =
            |turns: f64| dims as f64 * (original / (turns * 2.0 * PI)).ln() / (2.0 * theta.ln());
        let (mut low, mut high) = (pair_of(self.beta_fast), pair_of(self.beta_slow));
        if self.truncate {
            (low, high) = (low.floor(), high.ceil());
        }
        (low, high) = (low.max(0.0), high.min(dims as f64 - 1.0));
        if low == high {
            // A step.
            high += 0.001;
        }
        (low, high)
    }
}
