//! One prediction: plain loops with a fixed order of sums, so the same bits on every CPU.

use speculation::exp::exp;
use speculation::simd::Kernel;

use super::AcceptanceHead;
use crate::activation::silu;
use crate::linear::LinearScratch;
use crate::norm::sum_lanes;

/// Partial sums of the last layer: input `i` goes to sum `i % 16`.
const LANES: usize = 16;

/// Buffers that predictions reuse: after the first one nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct HeadScratch {
    /// The hidden state as the blocks change it, `(hidden)`.
    x: Vec<f32>,
    /// A block's linear part, `(hidden)`.
    linear: Vec<f32>,
    quantized: LinearScratch,
}

impl AcceptanceHead {
    /// The probability that a draft token is accepted, from the draft model's last hidden state after
    /// the final norm at that token's position, `hidden` (hidden).
    ///
    /// # Panics
    /// If `hidden` has another length than the head; [`AcceptanceHead::check`] tells beforehand.
    pub fn accept_probability(&self, hidden: &[f32], scratch: &mut HeadScratch) -> f32 {
        let width = self.info.hidden_size;
        assert_eq!(hidden.len(), width, "the hidden state is of another width");
        let HeadScratch {
            x,
            linear,
            quantized,
        } = scratch;
        x.clear();
        x.extend_from_slice(hidden);
        linear.resize(width, 0.0);
        for block in 0..self.info.depth {
            let stored = if self.info.tied { 0 } else { block };
            self.blocks[stored].forward(&self.cpu, x, linear, quantized);
            self.cpu.level.run(Residual { x, linear });
        }
        self.cpu.level.run(Sigmoid {
            x,
            weight: &self.margin,
            bias: self.margin_bias,
        })
    }
}

/// `x <- x + SiLU(linear)`.
struct Residual<'a> {
    x: &'a mut [f32],
    linear: &'a [f32],
}

impl Kernel for Residual<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (x, &linear) in self.x.iter_mut().zip(self.linear) {
            *x += silu(linear);
        }
    }
}

/// `sigmoid(weight · x + bias)`.
struct Sigmoid<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: f32,
}

impl Kernel for Sigmoid<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        let (weights, weights_rest) = self.weight.as_chunks::<LANES>();
        for (x, weight) in chunks.iter().zip(weights) {
            for lane in 0..LANES {
                sums[lane] += x[lane] * weight[lane];
            }
        }
        for ((sum, x), weight) in sums.iter_mut().zip(rest).zip(weights_rest) {
            *sum += x * weight;
        }
        let margin = sum_lanes(sums) + self.bias;
        1.0 / (1.0 + exp(-margin))
    }
}
