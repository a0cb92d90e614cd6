//! Rotary position embedding (Su et al. 2021), with linear frequency scaling and that of
//! Llama 3.1.

use std::f64::consts::PI;

use speculation::simd::{Kernel, Level};

/// How rotation frequencies are stretched beyond the context a model was first trained on.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

/// Cosines and sines of every position reached so far. The default rotates nothing.
#[derive(Clone, Debug, Default)]
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
                self.cos.push(libm::cos(angle) as f32);
                self.sin.push(libm::sin(angle) as f32);
            }
        }
    }

    /// Cosines and sines of `position`, `(head_dim / 2)` each; [`Rotary::reserve`] made sure of it.
    pub(crate) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let half = self.frequencies.len();
        let row = position * half..(position + 1) * half;
        (&self.cos[row.clone()], &self.sin[row])
    }

    /// Rotates each head of `heads`, `(heads, head_dim)`, to `position`: dimension `i` is paired
    /// with `i + head_dim / 2`.
    pub(crate) fn apply(&self, level: Level, heads: &mut [f32], position: usize) {
        let half = self.frequencies.len();
        if half == 0 {
            return;
        }
        let (cos, sin) = self.at(position);
        level.run(Rotation { heads, cos, sin });
    }
}

/// Rotates `heads`, `(heads, head_dim)`, by angles whose cosines and sines are given.
struct Rotation<'a> {
    heads: &'a mut [f32],
    cos: &'a [f32],
    sin: &'a [f32],
}

impl Kernel for Rotation<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let half = self.cos.len();
        let sin = &self.sin[..half];
        for head in self.heads.chunks_exact_mut(2 * half) {
            let (first, second) = head.split_at_mut(half);
            for i in 0..half {
                let (a, b) = (first[i], second[i]);
                first[i] = a * self.cos[i] - b * sin[i];
                second[i] = b * self.cos[i] + a * sin[i];
            }
        }
    }
}

fn scale(frequency: f64, scaling: RopeScaling) -> f64 {
    match scaling {
        RopeScaling::Default => frequency,
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
mod tests {
    use super::*;

    #[test]
    fn every_level_gives_the_bits_of_the_formula() {
        let mut rotary = Rotary::new(10_000.0, 38, RopeScaling::Default);
        rotary.reserve(10);
        let heads: Vec<f32> = (0..2 * 38).map(|i| (i as f32 * 0.7).sin()).collect();
        let (cos, sin) = rotary.at(9);
        for level in Level::all() {
            let mut rotated = heads.clone();
            rotary.apply(level, &mut rotated, 9);
            for (head, rotated) in heads.chunks(38).zip(rotated.chunks(38)) {
                for i in 0..19 {
                    let (a, b) = (head[i], head[19 + i]);
                    assert_eq!(rotated[i], a * cos[i] - b * sin[i], "{level:?} {i}");
                    assert_eq!(rotated[19 + i], b * cos[i] + a * sin[i], "{level:?} {i}");
                }
            }
        }
    }

    #[test]
    fn linear_scaling_divides_positions() {
        let rotated = |scaling, position| {
            let mut rotary = Rotary::new(10_000.0, 8, scaling);
            rotary.reserve(64);
            let mut head = [0.3, -1.0, 0.5, 0.2, 0.9, 0.1, -0.4, 0.7];
            rotary.apply(Level::detect(), &mut head, position);
            head
        };
        let plain = rotated(RopeScaling::Default, 5);
        let scaled = rotated(RopeScaling::Linear { factor: 8.0 }, 40);
        for (a, b) in plain.iter().zip(scaled) {
            assert!((a - b).abs() < 1e-6, "{a} is not {b}");
        }
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
