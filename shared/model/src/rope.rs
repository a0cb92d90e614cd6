//! Rotary position embedding (Su et al. 2021), with linear frequency scaling, that of Llama 3.1, YaRN and LongRoPE.

mod scaling;
mod yarn;

use speculation::simd::{Kernel, Level};

pub use self::scaling::RopeScaling;
pub(crate) use self::{scaling::LongRope, yarn::Yarn};

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

/// Cosines and sines of every position reached so far. The default rotates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotary {
    /// Radians a position, one for each pair of dimensions that rotates, `(dims / 2)`.
    frequencies: Vec<f32>,
    /// The factor of cosines and sines.
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
            let scaling = &rope.scaling;
            scaling.frequency(i, rope.theta, dims, context_len) as f32
        });
        Self {
            frequencies: frequencies.collect(),
            scale: rope.scaling.attention_factor(),
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

#[cfg(test)]
mod tests;
