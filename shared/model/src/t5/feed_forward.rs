//! The feed-forward network of a layer: two matrices with a function between them, gated or not
//! (Shazeer 2020).

use speculation::simd::Kernel;

use super::T5Loader;
use crate::{
    activation::{WithFunction, add, with_function},
    config::Activation,
    cpu::Cpu,
    ends::LayerScratch,
    linear::{Linear, OutputOrder},
    mlp::GatedMlp,
    norm::RmsNorm,
    weights::WeightsError,
};

#[derive(Clone, Debug)]
pub(super) struct FeedForward {
    norm: RmsNorm,
    network: T5Network,
}

#[derive(Clone, Debug)]
enum T5Network {
    Gated(GatedMlp),
    Plain {
        /// `(intermediate, hidden)`.
        input: Linear,
        /// `(hidden, intermediate)`.
        output: Linear,
        activation: Activation,
    },
}

impl FeedForward {
    /// Loads the sublayer called `name`.
    pub(super) fn load(loader: &T5Loader<'_>, layer: &str) -> Result<Self, WeightsError> {
        let config = loader.config;
        let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
        let name = format!("{layer}.DenseReluDense");
        // What goes through the function, and what it gates if there is such a thing.
        let (parts, order): (&[_], _) = if config.gated {
            (&["wi_0", "wi_1"], OutputOrder::Paired)
        } else {
            (&["wi"], OutputOrder::AsGiven)
        };
        let input = loader.stack(order, &name, parts, [ffn, hidden])?;
        let output = loader.stack(OutputOrder::AsGiven, &name, &["wo"], [hidden, ffn])?;
        let activation = config.activation;
        let network = if config.gated {
            T5Network::Gated(GatedMlp::new(input, output, activation))
        } else {
            T5Network::Plain {
                input,
                output,
                activation,
            }
        };
        Ok(Self {
            norm: loader.norm(&format!("{layer}.layer_norm"))?,
            network,
        })
    }

    /// Adds the network's output to the hidden states `x`, `(rows, hidden)`.
    pub(super) fn forward(&self, cpu: &Cpu, x: &mut [f32], scratch: &mut LayerScratch) {
        scratch.normed.resize(x.len(), 0.0);
        self.norm.forward(cpu.level, x, &mut scratch.normed);
        scratch.update.resize(x.len(), 0.0);
        let (normed, update) = (&scratch.normed, &mut scratch.update);
        let linear = &mut scratch.linear;
        match &self.network {
            T5Network::Gated(mlp) => {
                mlp.forward_before(None, cpu, normed, update, &mut scratch.mlp, linear);
            }
            T5Network::Plain {
                input,
                output,
                activation,
            } => {
                let rows = x.len() / output.outputs();
                let inner = &mut scratch.inner;
                inner.resize(rows * input.outputs(), 0.0);
                input.forward(cpu, normed, inner, linear);
                cpu.level.run(Activate {
                    activation: *activation,
                    values: inner,
                });
                output.forward(cpu, inner, update, linear);
            }
        }
        add(x, update);
    }
}

/// `values = activation(values)`, number by number.
struct Activate<'a> {
    activation: Activation,
    values: &'a mut [f32],
}

impl WithFunction for Activate<'_> {
    #[inline(always)]
    fn with(self, function: impl Fn(f32) -> f32) {
        for value in self.values {
            *value = function(*value);
        }
    }
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        with_function(self.activation, self);
    }
}

#[cfg(test)]
mod tests {
    use speculation::simd::Level;

    use super::*;
    use crate::activation::{gelu_tanh, relu, silu};

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
                let mut values = input.clone();
                level.run(Activate {
                    activation,
                    values: &mut values,
                });
                assert_eq!(values, expected, "{activation:?} {level:?}");
            }
        }
    }
}
