//! One decoder layer.

use speculation::ports::Segment;
use speculation::simd::Level;
use speculation::tree_paths::TreePaths;

use super::{
    heads::{HeadNorms, LayerHeads},
    loading::LayerWeights,
    tensors::LayerPart::{
        AttentionNorm, AttentionPostNorm, Key, MlpNorm, MlpPostNorm, Output, Query, Value,
    },
};
use crate::{
    activation::{add, add_scaled},
    attention::{Attention, AttentionScoring},
    cache::CpuCache,
    config::ModelConfig,
    cpu::{Cpu, SharedSlice},
    ends::LayerScratch,
    linear::Linear,
    mlp::GatedMlp,
    norm::RmsNorm,
    rope::Rotary,
    weights::WeightsError,
};

/// Weights of a layer. Projections of the same input are one matrix.
#[derive(Clone, Debug)]
pub(super) struct GatedLayer {
    attention_norm: Option<RmsNorm>,
    /// Query, key and value: `((heads + 2 * kv_heads) * head_dim, hidden)`.
    qkv: Linear,
    /// Norms of queries and keys, if there are.
    head_norms: Option<HeadNorms>,
    /// `(hidden, heads * head_dim)`.
    output: Linear,
    /// Norm of what attention adds, if there is one.
    attention_post_norm: Option<RmsNorm>,
    mlp_norm: Option<RmsNorm>,
    mlp: GatedMlp,
    /// Norm of what the feed-forward network adds, if there is one.
    mlp_post_norm: Option<RmsNorm>,
    /// What is added to the hidden states is multiplied by it, if there is one.
    residual_scale: Option<f32>,
    query_dim: usize,
    kv_dim: usize,
    scoring: AttentionScoring,
    /// Whether it is one of the layers with a window, which may rotate in another way.
    windowed: bool,
    rotated: bool,
}

/// What every layer of a forward works with.
#[derive(Clone, Copy)]
pub(super) struct LayerPass<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) rotary: &'a Rotary,
    /// The rotation of layers with a window, where it differs.
    pub(super) window_rotary: Option<&'a Rotary>,
    /// The tree that each segment ends in.
    pub(super) trees: &'a [TreePaths],
    /// The matrix that comes after the layer's.
    pub(super) next: &'a Linear,
}

impl GatedLayer {
    /// Loads the `index`-th layer of `config`.
    pub(super) fn load(
        config: &ModelConfig,
        index: usize,
        weights: &LayerWeights<'_>,
    ) -> Result<Self, WeightsError> {
        Ok(Self {
            attention_norm: weights.optional_norm(AttentionNorm)?,
            qkv: weights.stack(&[Query, Key, Value])?,
            head_norms: HeadNorms::load(weights)?,
            output: weights.stack(&[Output])?,
            attention_post_norm: weights.optional_norm(AttentionPostNorm)?,
            mlp_norm: weights.optional_norm(MlpNorm)?,
            mlp: weights.mlp()?,
            mlp_post_norm: weights.optional_norm(MlpPostNorm)?,
            residual_scale: config.residual_scale,
            query_dim: config.heads * config.head_dim,
            kv_dim: config.kv_heads * config.head_dim,
            scoring: AttentionScoring {
                scale: config.attention_scale,
                softcap: config.attention_softcap,
                window: config.window_of(index),
            },
            windowed: config.is_windowed(index),
            rotated: config.is_rotated(index),
        })
    }

    /// The matrix of the first product.
    pub(super) fn first(&self) -> &Linear {
        &self.qkv
    }

    /// The matrices, in the order of their products.
    pub(super) fn matrices(&self) -> [&Linear; 4] {
        let [gate_up, down] = self.mlp.matrices();
        [&self.qkv, &self.output, gate_up, down]
    }

    /// Takes the hidden states `x`, `(rows, hidden)`, of all segments through this layer, the
    /// `index`-th of the model, and writes their keys and values to the caches.
    pub(super) fn forward(
        &self,
        pass: LayerPass<'_>,
        index: usize,
        batch: &mut [Segment<'_, CpuCache>],
        x: &mut [f32],
        scratch: &mut LayerScratch,
    ) {
        let cpu = pass.cpu;
        let level = cpu.level;
        scratch.normed.resize(x.len(), 0.0);
        scratch.update.resize(x.len(), 0.0);
        let rows = x.len() / self.output.outputs();

        let input = normed(level, self.attention_norm.as_ref(), x, &mut scratch.normed);
        scratch.projected.resize(rows * self.qkv.outputs(), 0.0);
        self.qkv.forward_before(
            Some(&self.output),
            cpu,
            input,
            &mut scratch.projected,
            &mut scratch.linear,
        );
        scratch.attended.resize(rows * self.query_dim, 0.0);
        self.attend(pass, index, batch, scratch);
        self.output.forward_before(
            Some(self.mlp.gate_up()),
            cpu,
            &scratch.attended,
            &mut scratch.update,
            &mut scratch.linear,
        );
        self.add(level, self.attention_post_norm.as_ref(), x, scratch);

        let input = normed(level, self.mlp_norm.as_ref(), x, &mut scratch.normed);
        self.mlp.forward_before(
            Some(pass.next),
            cpu,
            input,
            &mut scratch.update,
            &mut scratch.mlp,
            &mut scratch.linear,
        );
        self.add(level, self.mlp_post_norm.as_ref(), x, scratch);
    }

    /// Adds what a block made of the hidden states `x`, `(rows, hidden)`, to them, normalised if there is a norm.
    fn add(&self, level: Level, norm: Option<&RmsNorm>, x: &mut [f32], scratch: &mut LayerScratch) {
        if let Some(norm) = norm {
            norm.forward_in_place(level, &mut scratch.update);
        }
        match self.residual_scale {
            Some(scale) => add_scaled(x, &scratch.update, scale),
            None => add(x, &scratch.update),
        }
    }

    /// Rotates queries and keys, and writes keys and values to the caches; all attend.
    fn attend(
        &self,
        pass: LayerPass<'_>,
        index: usize,
        batch: &[Segment<'_, CpuCache>],
        scratch: &mut LayerScratch,
    ) {
        let width = self.qkv.outputs();
        let dims = (self.query_dim, self.kv_dim);
        if let Some(norms) = &self.head_norms {
            norms.over_all(pass.cpu.level, &mut scratch.projected, dims);
        }
        let qkv = SharedSlice::new(&mut scratch.projected);
        let heads = LayerHeads {
            batch,
            trees: pass.trees,
            norms: self.head_norms.as_ref(),
            dims,
            index,
            level: pass.cpu.level,
            rotary: match pass.window_rotary {
                _ if !self.rotated => None,
                Some(rotary) if self.windowed => Some(rotary),
                _ => Some(pass.rotary),
            },
            qkv,
        };
        let attention = Attention {
            queries: qkv,
            stride: width,
            views: &heads,
            scoring: self.scoring,
        };
        let output = &mut scratch.attended;
        attention.forward(pass.cpu, output, &mut scratch.attention);
    }
}

/// The input of a block: the hidden states `x`, which `norm` writes to `to`, if there is one.
fn normed<'a>(level: Level, norm: Option<&RmsNorm>, x: &'a [f32], to: &'a mut [f32]) -> &'a [f32] {
    let Some(norm) = norm else { return x };
    norm.forward(level, x, to);
    to
}
