//! The attentions of a layer: of a stack's tokens to one another, and of the decoder's to the source.

use super::{Scratch, add, load_norm, stack};
use crate::{
    attention::{Attention, Scoring, Views},
    cache::LayerCache,
    config::ModelConfig,
    cpu::{Cpu, SharedSlice},
    linear::{Linear, WeightFormat},
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

/// Attention of tokens to tokens of the same stack.
#[derive(Clone, Debug)]
pub(super) struct SelfAttention {
    norm: RmsNorm,
    /// Query, key and value: `(3 * heads * head_dim, hidden)`.
    qkv: Linear,
    /// `(hidden, heads * head_dim)`.
    output: Linear,
}

/// Attention of the decoder's tokens to the source.
#[derive(Clone, Debug)]
pub(super) struct CrossAttention {
    norm: RmsNorm,
    /// `(heads * head_dim, hidden)`.
    query: Linear,
    /// Key and value, of the encoder's hidden states: `(2 * heads * head_dim, hidden)`.
    key_value: Linear,
    /// `(hidden, heads * head_dim)`.
    output: Linear,
}

impl SelfAttention {
    /// Loads the sublayer called `name`.
    pub(super) fn load(
        config: &ModelConfig,
        weights: &Weights,
        name: &str,
        format: WeightFormat,
    ) -> Result<Self, WeightsError> {
        let (hidden, inner) = (config.hidden_size, config.heads * config.head_dim);
        let part = |part: &str| format!("{name}.SelfAttention.{part}.weight");
        let qkv = ["q", "k", "v"].map(part);
        Ok(Self {
            norm: load_norm(config, weights, name)?,
            qkv: stack(weights, &qkv, [inner, hidden], format)?,
            output: stack(weights, &[part("o")], [hidden, inner], format)?,
        })
    }

    /// Writes queries, keys and values of the hidden states `x`, `(rows, hidden)`, to
    /// `scratch.projected`, `(rows, 3, heads * head_dim)`, and makes room for what is attended.
    pub(super) fn project(&self, cpu: &Cpu, x: &[f32], scratch: &mut Scratch) {
        project(cpu, &self.norm, &self.qkv, x, scratch);
        let projected = scratch.projected.len();
        scratch.attended.resize(projected / 3, 0.0);
    }

    /// Adds to `x` what was attended.
    pub(super) fn finish(&self, cpu: &Cpu, x: &mut [f32], scratch: &mut Scratch) {
        finish(cpu, &self.output, x, scratch);
    }
}

impl CrossAttention {
    /// Loads the sublayer called `name`.
    pub(super) fn load(
        config: &ModelConfig,
        weights: &Weights,
        name: &str,
        format: WeightFormat,
    ) -> Result<Self, WeightsError> {
        let (hidden, inner) = (config.hidden_size, config.heads * config.head_dim);
        let part = |part: &str| format!("{name}.EncDecAttention.{part}.weight");
        let key_value = ["k", "v"].map(part);
        Ok(Self {
            norm: load_norm(config, weights, name)?,
            query: stack(weights, &[part("q")], [inner, hidden], format)?,
            key_value: stack(weights, &key_value, [inner, hidden], format)?,
            output: stack(weights, &[part("o")], [hidden, inner], format)?,
        })
    }

    /// Writes key and value of each of the encoder's hidden states, `(positions, hidden)`, to `cache`.
    pub(super) fn read_source(
        &self,
        cpu: &Cpu,
        states: &[f32],
        cache: &mut LayerCache,
        scratch: &mut Scratch,
    ) {
        let width = self.key_value.outputs();
        let positions = states.len() / self.output.outputs();
        scratch.projected.resize(positions * width, 0.0);
        let (projected, linear) = (&mut scratch.projected, &mut scratch.linear);
        self.key_value.forward(cpu, states, projected, linear);
        for (position, row) in projected.chunks_exact(width).enumerate() {
            let (key, value) = row.split_at(width / 2);
            cache.write(position, key, value);
        }
    }

    /// Writes queries of the hidden states `x`, `(rows, hidden)`, to `scratch.projected`,
    /// `(rows, heads * head_dim)`, and makes room for what is attended.
    pub(super) fn project(&self, cpu: &Cpu, x: &[f32], scratch: &mut Scratch) {
        project(cpu, &self.norm, &self.query, x, scratch);
        let projected = scratch.projected.len();
        scratch.attended.resize(projected, 0.0);
    }

    /// Adds to `x` what was attended.
    pub(super) fn finish(&self, cpu: &Cpu, x: &mut [f32], scratch: &mut Scratch) {
        finish(cpu, &self.output, x, scratch);
    }
}

fn project(cpu: &Cpu, norm: &RmsNorm, linear: &Linear, x: &[f32], scratch: &mut Scratch) {
    scratch.normed.resize(x.len(), 0.0);
    norm.forward(cpu.level, x, &mut scratch.normed);
    let rows = x.len() / scratch.hidden;
    scratch.projected.resize(rows * linear.outputs(), 0.0);
    let (projected, room) = (&mut scratch.projected, &mut scratch.linear);
    linear.forward(cpu, &scratch.normed, projected, room);
}

fn finish(cpu: &Cpu, output: &Linear, x: &mut [f32], scratch: &mut Scratch) {
    scratch.update.resize(x.len(), 0.0);
    let (update, linear) = (&mut scratch.update, &mut scratch.linear);
    output.forward(cpu, &scratch.attended, update, linear);
    add(x, &scratch.update);
}

/// Attends with the queries that stand first in each row of `scratch.projected`, of `stride` numbers, and
/// writes the results to `scratch.attended`.
pub(super) fn attend(cpu: &Cpu, stride: usize, views: &impl Views, scratch: &mut Scratch) {
    let attention = Attention {
        queries: SharedSlice::new(&mut scratch.projected),
        stride,
        views,
        scoring: Scoring {
            scale: 1.0,
            softcap: None,
            window: None,
        },
    };
    let output = &mut scratch.attended;
    attention.forward(cpu, output, &mut scratch.attention);
}
