//! Rotary position embedding (Su et al. 2021), with linear frequency scaling, that of Llama 3.1, and LongRoPE.

use std::{f64::consts::PI, sync::Arc};

use speculation::simd::{Kernel, Level};

/// How positions rotate queries and keys.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the rotation frequencies.
    pub theta: f64,
    /// How the frequencies are stretched.
    pub scaling: RopeScaling,
    /// Dimensions of a head that rotate, its first ones, an even number; `None`: all.
    pub dims: Option<usize>,
}

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
    /// Each frequency has a divisor of its own.
    LongRope(Arc<LongRope>),
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
    /// What cosines and sines are multiplied by.
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

/// Cosines and sines of every position reached so far. The default rotates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotary {
    /// Radians a position, one for each pair of dimensions that rotates, `(dims / 2)`.
    frequencies: Vec<f32>,
    /// What cosines and sines are multiplied by.
    scale: f32,
    /// Dimensions of a head, at least those that rotate.
    head_dim: usize,
    /// `(positions, dims / 2)`.
    cos: Vec<f32>,
    sin: Vec<f32>,
}

/// Positions by which the tables grow.
const STEP: usize = 256;

impl Rotary {
    /// The rotation `rope` of heads of `head_dim` dimensions, in a model with a context of `context_len` tokens.
    pub(crate) fn new(rope: &RopeConfig, head_dim: usize, context_len: usize) -> Self {
        let dims = rope.dims.unwrap_or(head_dim);
        let frequencies = (0..dims / 2).map(|i| {
            let exponent = (2 * i) as f64 / dims as f64;
            let frequency = 1.0 / libm::pow(rope.theta, exponent);
            scale(i, frequency, &rope.scaling, context_len) as f32
        });
        Self {
            frequencies: frequencies.collect(),
            scale: match &rope.scaling {
                RopeScaling::LongRope(long_rope) => long_rope.attention_factor,
                RopeScaling::Default | RopeScaling::Linear { .. } | RopeScaling::Llama3 { .. } => {
                    1.0
                }
            },
            head_dim,
            ..Self::default()
        }
    }

    /// Makes sure that positions below `len` can be applied.
    pub(crate) fn reserve(&mut self, len: usize) {
        let half = self.frequencies.len();
        if half == 0 {
            return;
        }
        let held = self.cos.len() / half;
        if len <= held {
            return;
        }
        for position in held..len.next_multiple_of(STEP) {
            for &frequency in &self.frequencies {
                // The angle is rounded to single precision, as it was when the model was trained.
                let angle = f64::from(position as f32 * frequency);
                self.cos.push(libm::cos(angle) as f32 * self.scale);
                self.sin.push(libm::sin(angle) as f32 * self.scale);
            }
        }
    }

    /// Cosines and sines of `position`, `(dims / 2)` each; [`Rotary::reserve`] made sure of it.
    pub(crate) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let half = self.frequencies.len();
        let row = position * half..(position + 1) * half;
        (&self.cos[row.clone()], &self.sin[row])
    }

    /// Rotates each head of `heads`, `(heads, head_dim)`, to `position`: of the dimensions that rotate, `i` is
    /// paired with `i + dims / 2`.
    pub(crate) fn apply(&self, level: Level, heads: &mut [f32], position: usize) {
        if self.frequencies.is_empty() {
            return;
        }
        let (cos, sin) = self.at(position);
        let head_dim = self.head_dim;
        level.run(Rotation {
            heads,
            head_dim,
            cos,
            sin,
        });
    }
}

/// Rotates `heads`, `(heads, head_dim)`, by angles whose cosines and sines are given.
struct Rotation<'a> {
    heads: &'a mut [f32],
    head_dim: usize,
    cos: &'a [f32],
    sin: &'a [f32],
}

impl Kernel for Rotation<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let half = self.cos.len();
        let sin = &self.sin[..half];
        for head in self.heads.chunks_exact_mut(self.head_dim) {
            let (first, second) = head[..2 * half].split_at_mut(half);
            for i in 0..half {
                let (a, b) = (first[i], second[i]);
                first[i] = a * self.cos[i] - b * sin[i];
                second[i] = b * self.cos[i] + a * sin[i];
            }
        }
    }
}

/// The frequency of pair `i` of dimensions, in a model with a context of `context_len` tokens.
fn scale(i: usize, frequency: f64, scaling: &RopeScaling, context_len: usize) -> f64 {
    match *scaling {
        RopeScaling::Default => frequency,
        RopeScaling::LongRope(ref long_rope) => {
            frequency / f64::from(long_rope.factors(context_len)[i])
        }
        RopeScaling::Linear { factor } => frequency / factor,
        RopeScaling::Llama3 {
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

#[cfg(test)]
mod tests;
