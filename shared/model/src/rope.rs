//! Rotary position embedding (Su et al. 2021), with the frequency scaling of Llama 3.1.

use std::f64::consts::PI;

/// How rotation frequencies are stretched beyond the context a model was first trained on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    Default,
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
}

/// Cosines and sines of every position reached so far.
#[derive(Clone, Debug)]
pub(crate) struct Rotary {
    /// Radians a position, one for each pair of dimensions, `(head_dim / 2)`.
    frequencies: Vec<f32>,
    /// `(positions, head_dim / 2)`.
    cos: Vec<f32>,
    sin: Vec<f32>,
}

/// Positions by which the tables grow.
const STEP: usize = 256;

impl Rotary {
    pub(crate) fn new(theta: f64, head_dim: usize, scaling: RopeScaling) -> Self {
        let frequencies = (0..head_dim / 2)
            .map(|i| {
                let exponent = (2 * i) as f64 / head_dim as f64;
                scale(1.0 / libm::pow(theta, exponent), scaling) as f32
            })
            .collect();
        Self {
            frequencies,
            cos: Vec::new(),
            sin: Vec::new(),
        }
    }

    /// Makes sure that positions below `len` can be applied.
    pub(crate) fn reserve(&mut self, len: usize) {
        let half = self.frequencies.len();
        let held = self.cos.len() / half;
        if len <= held {
            return;
        }
        for position in held..len.next_multiple_of(STEP) {
            for &frequency in &self.frequencies {
                // The angle is rounded to single precision, as it was when the model was trained.
                let angle = f64::from(position as f32 * frequency);
                self.cos.push(libm::cos(angle) as f32);
                self.sin.push(libm::sin(angle) as f32);
            }
        }
    }

    /// Rotates each head of `heads`, `(heads, head_dim)`, to `position`: dimension `i` is paired
    /// with `i + head_dim / 2`.
    pub(crate) fn apply(&self, heads: &mut [f32], position: usize) {
        let half = self.frequencies.len();
        let cos = &self.cos[position * half..][..half];
        let sin = &self.sin[position * half..][..half];
        for head in heads.chunks_exact_mut(2 * half) {
            let (first, second) = head.split_at_mut(half);
            for i in 0..half {
                let (a, b) = (first[i], second[i]);
                first[i] = a * cos[i] - b * sin[i];
                second[i] = b * cos[i] + a * sin[i];
            }
        }
    }
}

fn scale(frequency: f64, scaling: RopeScaling) -> f64 {
    match scaling {
        RopeScaling::Default => frequency,
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
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_products_of_equal_distance() {
        let mut rotary = Rotary::new(10_000.0, 8, RopeScaling::Default);
        rotary.reserve(64);
        let dot = |p: usize, q: usize| {
            let mut a = [0.3, -1.0, 0.5, 0.2, 0.9, 0.1, -0.4, 0.7];
            let mut b = [0.6, 0.4, -0.2, 0.8, -0.5, 0.3, 0.1, 0.2];
            rotary.apply(&mut a, p);
            rotary.apply(&mut b, q);
            a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>()
        };
        assert!((dot(5, 2) - dot(43, 40)).abs() < 1e-5);
        assert!((dot(5, 2) - dot(5, 3)).abs() > 1e-3);
    }

    #[test]
    fn position_zero_is_the_identity() {
        let mut rotary = Rotary::new(10_000.0, 4, RopeScaling::Default);
        rotary.reserve(1);
        let mut head = [1.0, 2.0, 3.0, 4.0];
        rotary.apply(&mut head, 0);
        assert_eq!(head, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn llama3_keeps_high_and_divides_low_frequencies() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context_len: 8192,
        };
        assert_eq!(scale(1.0, scaling), 1.0);
        assert_eq!(scale(1e-4, scaling), 1e-4 / 8.0);
        // 2.5 waves in the original context: half way.
        let middle = 2.5 * 2.0 * PI / 8192.0;
        assert!((scale(middle, scaling) - middle * (0.5 / 8.0 + 0.5)).abs() < 1e-9);
    }
}
