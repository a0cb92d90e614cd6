//! The attentions of a layer: of a stack's tokens to one another, and of the decoder's to the source.

use super::T5Loader;
use crate::{
    activation::add,
    attention::{Attention, AttentionScoring, Views},
    cpu::{Cpu, SharedSlice},
    ends::LayerScratch,
    linear::{Linear, OutputOrder},
    norm::RmsNorm,
    weights::WeightsError,
};

/// What stands around an attention.
#[derive(Clone, Debug)]
pub(super) struct Projections {
    norm: RmsNorm,
    /// Query, and key and value where they are of the same tokens: `(parts * heads * head_dim, hidden)`.
    input: Linear,
    /// `(hidden, heads * head_dim)`.
    output: Linear,
}

/// The projections `parts` of the attention `name`, as one matrix.
pub(super) fn load_parts(
    loader: &T5Loader<'_>,
    name: &str,
    parts: &[&str],
) -> Result<Linear, WeightsError> {
    let config = loader.config;
    let shape = [config.heads * config.head_dim, config.hidden_size];
    loader.stack(OutputOrder::AsGiven, name, parts, shape)
}

impl Projections {
    /// Loads those of the sublayer `layer`, whose attention has the name `kind` and takes `parts`.
    pub(super) fn load(
        loader: &T5Loader<'_>,
        layer: &str,
        kind: &str,
        parts: &[&str],
    ) -> Result<Self, WeightsError> {
        let (config, name) = (loader.config, format!("{layer}.{kind}"));
        let shape = [config.hidden_size, config.heads * config.head_dim];
        Ok(Self {
            norm: loader.norm(&format!("{layer}.layer_norm"))?,
            input: load_parts(loader, &name, parts)?,
            output: loader.stack(OutputOrder::AsGiven, &name, &["o"], shape)?,
        })
    }

    /// Writes queries, and keys and values if there are, of the hidden states `x`, `(rows, hidden)`, to
    /// `scratch.projected`, `(rows, parts, heads * head_dim)`, and makes room for what is attended.
    pub(super) fn project(&self, cpu: &Cpu, x: &[f32], scratch: &mut LayerScratch) {
        scratch.normed.resize(x.len(), 0.0);
        self.norm.forward(cpu.level, x, &mut scratch.normed);
        let rows = x.len() / self.output.outputs();
        scratch.projected.resize(rows * self.input.outputs(), 0.0);
        scratch.attended.resize(rows * self.output.inputs(), 0.0);
        let (projected, linear) = (&mut scratch.projected, &mut scratch.linear);
        self.input.forward(cpu, &scratch.normed, projected, linear);
    }

    /// Adds to `x` what was attended.
    pub(super) fn finish(&self, cpu: &Cpu, x: &mut [f32], scratch: &mut LayerScratch) {
        scratch.update.resize(x.len(), 0.0);
        let (update, linear) = (&mut scratch.update, &mut scratch.linear);
        self.output.forward(cpu, &scratch.attended, update, linear);
        add(x, update);
    }
}

/// Attends with the queries that stand first in each row of `scratch.projected`, of `stride` numbers, and
/// writes the results to `scratch.attended`.
pub(super) fn attend(cpu: &Cpu, stride: usize, views: &dyn Views, scratch: &mut LayerScratch) {
    let attention = Attention {
        queries: SharedSlice::new(&mut scratch.projected),
        stride,
        views,
        scoring: AttentionScoring {
            scale: 1.0,
            softcap: None,
            window: None,
        },
    };
    let output = &mut scratch.attended;
    attention.forward(cpu, output, &mut scratch.attention);
}
