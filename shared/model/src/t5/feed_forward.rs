//! The feed-forward network of a layer: two matrices with a function between them, gated or not
//! (Shazeer 2020).

use speculation::simd::Kernel;

use super::{Scratch, add, load_norm, stack};
use crate::{
    activation::{Gated, gelu_tanh, relu, silu},
    config::{Activation, ModelConfig},
    cpu::Cpu,
    linear::{Linear, WeightFormat},
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

#[derive(Clone, Debug)]
pub(super) struct FeedForward {
    norm: RmsNorm,
    /// `(intermediate, hidden)`, or `(2 * intermediate, hidden)`: what goes through the function, then what
    /// it gates.
    input: Linear,
    /// `(hidden, intermediate)`.
    output: Linear,
    activation: Activation,
    gated: bool,
    intermediate: usize,
}

impl FeedForward {
    /// Loads the sublayer called `name`.
    pub(super) fn load(
        config: &ModelConfig,
        weights: &Weights,
        name: &str,
        format: WeightFormat,
    ) -> Result<Self, WeightsError> {
        let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
        let dense = |part: &str| format!("{name}.DenseReluDense.{part}.weight");
        let inputs = if config.gated {
            vec![dense("wi_0"), dense("wi_1")]
        } else {
            vec![dense("wi")]
        };
        Ok(Self {
            norm: load_norm(config, weights, name)?,
            input: stack(weights, &inputs, [ffn, hidden], format)?,
            output: stack(weights, &[dense("wo")], [hidden, ffn], format)?,
            activation: config.activation,
            gated: config.gated,
            intermediate: config.intermediate_size,
        })
    }

    /// Adds the network's output to the hidden states `x`, `(rows, hidden)`.
    pub(super) fn forward(&self, cpu: &Cpu, x: &mut [f32], scratch: &mut Scratch) {
        let rows = x.len() / self.output.outputs();
        scratch.normed.resize(x.len(), 0.0);
        self.norm.forward(cpu.level, x, &mut scratch.normed);
        scratch.inner.resize(rows * self.input.outputs(), 0.0);
        let linear = &mut scratch.linear;
        self.input
            .forward(cpu, &scratch.normed, &mut scratch.inner, linear);
        let activation = self.activation;
        let (input, intermediate) = (&scratch.inner, self.intermediate);
        scratch.activated.resize(rows * intermediate, 0.0);
        let output = &mut scratch.activated;
        if self.gated {
            Gated {
                activation,
                gate_up: input,
                output,
                intermediate,
            }
            .forward(cpu);
        } else {
            cpu.level.run(Plain {
                activation,
                input,
                output,
            });
        }
        scratch.update.resize(x.len(), 0.0);
        self.output
            .forward(cpu, &scratch.activated, &mut scratch.update, linear);
        add(x, &scratch.update);
    }
}

/// `output = activation(input)`, number by number.
struct Plain<'a> {
    activation: Activation,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Plain<'_> {
    #[inline(always)]
    fn with(self, activation: impl Fn(f32) -> f32) {
        for (output, input) in self.output.iter_mut().zip(self.input) {
            *output = activation(*input);
        }
    }
}

impl Kernel for Plain<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.activation {
            Activation::Silu => self.with(silu),
            Activation::GeluTanh => self.with(gelu_tanh),
            Activation::Relu => self.with(relu),
        }
    }
}

#[cfg(test)]
mod tests {
    use speculation::simd::Level;

    use super::*;

    #[test]
    fn every_level_gives_the_bits_of_the_formula() {
        let input: Vec<f32> = (0..101).map(|i| (i - 50) as f32 * 0.13).collect();
        for (activation, formula) in [
            (Activation::Silu, silu as fn(f32) -> f32),
            (Activation::GeluTanh, gelu_tanh),
            (Activation::Relu, relu),
        ] {
            let expected: Vec<f32> = input.iter().map(|x| formula(*x)).collect();
            for level in Level::all() {
                let mut output = vec![0.0; 101];
                level.run(Plain {
                    activation,
                    input: &input,
                    output: &mut output,
                });
                assert_eq!(output, expected, "{activation:?} {level:?}");
            }
        }
    }
}
