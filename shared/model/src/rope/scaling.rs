//! How rotation frequencies are stretched.

use std::{f64::consts::PI, sync::Arc};

use super::Yarn;

/// How rotation frequencies are stretched beyond the context a model was first trained on.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    Default,
    /// Positions are divided by `factor`, and so all frequencies (Chen et al. 2023).
    Linear {
        /// Divisor of every frequency.
        factor: f64,
    },
    /// Llama 3.1: frequencies whose wave is longer than the original context are divided by
    /// `factor`, short waves are kept, and those between are interpolated.
    Llama3 {
        /// Divisor of the low frequencies.
        factor: f64,
        /// Waves longer than the original context over this are low frequencies.
        low_freq_factor: f64,
        /// Waves shorter than the original context over this are high frequencies.
        high_freq_factor: f64,
        /// Context the frequencies were first trained on, in tokens.
        original_context_len: usize,
    },
    /// YaRN: low frequencies are divided, high ones are kept.
    Yarn(Yarn),
    /// Each frequency has a divisor of its own.
    LongRope(Arc<LongRope>),
}

impl RopeScaling {
    /// The context that positions are stretched to, in tokens, where that follows from the scaling alone.
    pub(crate) fn context_len(&self) -> Option<usize> {
        match self {
            Self::Yarn(yarn) => Some(yarn.context_len()),
            Self::Default | Self::Linear { .. } | Self::Llama3 { .. } | Self::LongRope(_) => None,
        }
    }

    /// The factor of cosines and sines.
    pub(crate) fn attention_factor(&self) -> f32 {
        match self {
            Self::Yarn(yarn) => yarn.attention_factor,
            Self::LongRope(long_rope) => long_rope.attention_factor,
            Self::Default | Self::Linear { .. } | Self::Llama3 { .. } => 1.0,
        }
    }

    /// By how many radians pair `i` of `dims` dimensions turns from one position to the next, with the base `theta`,
    /// in a model with a context of `context_len` tokens.
    pub(super) fn frequency(&self, i: usize, theta: f64, dims: usize, context_len: usize) -> f64 {
        let frequency = 1.0 / libm::pow(theta, (2 * i) as f64 / dims as f64);
        match *self {
            Self::Default => frequency,
            Self::Linear { factor } => frequency / factor,
            Self::LongRope(ref long_rope) => {
                frequency / f64::from(long_rope.factors(context_len)[i])
            }
            Self::Yarn(ref yarn) => yarn.stretched(i, frequency, theta, dims),
            Self::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context_len,
            } => {
                // Waves of this frequency in the original context.
                let waves = original_context_len as f64 * frequency / (2.0 * PI);
                if waves < low_freq_factor {
                    frequency / factor
                } else if waves > high_freq_factor {
                    frequency
                } else {
                    let smooth = (waves - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    (1.0 - smooth) * frequency / factor + smooth * frequency
                }
            }
        }
    }
}

/// LongRoPE (Ding et al. 2024): divisors that were searched for, one for each pair of dimensions that rotates.
///
/// The paper takes the long ones for sequences longer than the original context. A cache holds keys that were
/// rotated before a sequence got so long, so it is the model's own context that decides, for all of its sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct LongRope {
    /// For models whose context is not longer than the original one.
    pub short_factors: Vec<f32>,
    /// For models whose context is longer.
    pub long_factors: Vec<f32>,
    /// Context the frequencies were first trained on, in tokens.
    pub original_context_len: usize,
    /// The factor of cosines and sines.
    pub attention_factor: f32,
}

impl LongRope {
    /// The divisors for a model with a context of `context_len` tokens.
    pub(crate) fn factors(&self, context_len: usize) -> &[f32] {
        if context_len > self.original_context_len {
            &self.long_factors
        } else {
            &self.short_factors
        }
    }
}
