//! One decoder layer.

use rayon::prelude::*;
use speculation::ports::{KvCache, Segment};
use speculation::simd::Level;
use speculation::tree_paths::TreePaths;

use crate::{
    activation::GatedSilu,
    attention::Attention,
    cache::{LayerCache, LlamaCache},
    config::ModelConfig,
    linear::{Linear, LinearScratch, WeightFormat},
    norm::RmsNorm,
    rope::Rotary,
    weights::{Weights, WeightsError},
};

/// Multiply-adds of attention below which a segment stays on the calling thread.
const PARALLEL_WORK: usize = 4 << 20;

/// Weights of a layer. Projections of the same input are one matrix.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    attention_norm: RmsNorm,
    /// Query, key and value: `((heads + 2 * kv_heads) * head_dim, hidden)`.
    qkv: Linear,
    /// `(hidden, heads * head_dim)`.
    output: Linear,
    mlp_norm: RmsNorm,
    /// Gate and up: `(2 * intermediate, hidden)`.
    gate_up: Linear,
    /// `(hidden, intermediate)`.
    down: Linear,
    query_dim: usize,
    kv_dim: usize,
}

/// What every layer of a forward works with.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) level: Level,
    pub(super) rotary: &'a Rotary,
    /// The tree that each segment ends in.
    pub(super) trees: &'a [TreePaths],
}

/// What the rows of one segment see.
#[derive(Clone, Copy)]
struct View<'a> {
    cache: &'a LayerCache,
    /// Position of the first row.
    start: usize,
    /// Rows before the tree.
    trunk: usize,
    tree: &'a TreePaths,
}

impl<'a> View<'a> {
    /// Number of positions that row `row` sees, its own the last, and the slots of the tree's nodes
    /// among them.
    fn of(&self, row: usize) -> (usize, &'a [u32]) {
        match row.checked_sub(self.trunk) {
            None => (self.start + row + 1, &[]),
            Some(node) => {
                let path = self.tree.path(node);
                (self.start + self.trunk + path.len(), path)
            }
        }
    }
}

/// Buffers of a layer's forward, reused by the next.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerScratch {
    pub(super) linear: LinearScratch,
    /// `(rows, hidden)`.
    normed: Vec<f32>,
    /// `(rows, (heads + 2 * kv_heads) * head_dim)`.
    qkv: Vec<f32>,
    /// `(rows, heads * head_dim)`.
    attended: Vec<f32>,
    scores: Vec<f32>,
    /// `(rows, 2 * intermediate)`.
    gate_up: Vec<f32>,
    /// `(rows, intermediate)`.
    gated: Vec<f32>,
    /// What the layer adds to the hidden states, `(rows, hidden)`.
    update: Vec<f32>,
}

impl Layer {
    pub(super) fn load(
        config: &ModelConfig,
        weights: &Weights,
        index: usize,
        format: WeightFormat,
    ) -> Result<Self, WeightsError> {
        let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
        let query_dim = config.heads * config.head_dim;
        let kv_dim = config.kv_heads * config.head_dim;
        // Several projections of one input, stacked: (name, outputs).
        let stack = |parts: &[(&str, usize)], inputs: usize, has_bias: bool| {
            let (mut matrix, mut bias) = (Vec::new(), Vec::new());
            for (part, outputs) in parts {
                let name = format!("model.layers.{index}.{part}");
                matrix.extend(weights.tensor(&format!("{name}.weight"), &[*outputs, inputs])?);
                if has_bias {
                    bias.extend(weights.tensor(&format!("{name}.bias"), &[*outputs])?);
                }
            }
            Ok(Linear::new(
                &matrix,
                has_bias.then_some(bias),
                inputs,
                format,
            ))
        };
        let norm = |part: &str| {
            let weight =
                weights.tensor(&format!("model.layers.{index}.{part}.weight"), &[hidden])?;
            Ok(RmsNorm::new(weight, config.rms_norm_eps))
        };
        Ok(Self {
            attention_norm: norm("input_layernorm")?,
            qkv: stack(
                &[
                    ("self_attn.q_proj", query_dim),
                    ("self_attn.k_proj", kv_dim),
                    ("self_attn.v_proj", kv_dim),
                ],
                hidden,
                config.attention_bias,
            )?,
            output: stack(
                &[("self_attn.o_proj", hidden)],
                query_dim,
                config.attention_bias,
            )?,
            mlp_norm: norm("post_attention_layernorm")?,
            gate_up: stack(
                &[("mlp.gate_proj", ffn), ("mlp.up_proj", ffn)],
                hidden,
                config.mlp_bias,
            )?,
            down: stack(&[("mlp.down_proj", hidden)], ffn, config.mlp_bias)?,
            query_dim,
            kv_dim,
        })
    }

    /// Takes the hidden states `x`, `(rows, hidden)`, of all segments through this layer, the
    /// `index`-th of the model, and writes their keys and values to the caches.
    pub(super) fn forward(
        &self,
        pass: Pass<'_>,
        index: usize,
        batch: &mut [Segment<'_, LlamaCache>],
        x: &mut [f32],
        scratch: &mut LayerScratch,
    ) {
        let level = pass.level;
        scratch.normed.resize(x.len(), 0.0);
        scratch.update.resize(x.len(), 0.0);
        let rows = x.len() / self.output.outputs();

        self.attention_norm.forward(level, x, &mut scratch.normed);
        scratch.qkv.resize(rows * self.qkv.outputs(), 0.0);
        self.qkv.forward(
            level,
            &scratch.normed,
            &mut scratch.qkv,
            &mut scratch.linear,
        );
        scratch.attended.resize(rows * self.query_dim, 0.0);
        self.attend(pass, index, batch, scratch);
        self.output.forward(
            level,
            &scratch.attended,
            &mut scratch.update,
            &mut scratch.linear,
        );
        add(x, &scratch.update);

        self.mlp_norm.forward(level, x, &mut scratch.normed);
        scratch.gate_up.resize(rows * self.gate_up.outputs(), 0.0);
        self.gate_up.forward(
            level,
            &scratch.normed,
            &mut scratch.gate_up,
            &mut scratch.linear,
        );
        scratch.gated.resize(scratch.gate_up.len() / 2, 0.0);
        let inner = self.gate_up.outputs() / 2;
        let gate_ups = scratch.gate_up.chunks_exact(2 * inner);
        for (gate_up, output) in gate_ups.zip(scratch.gated.chunks_exact_mut(inner)) {
            level.run(GatedSilu { gate_up, output });
        }
        self.down.forward(
            level,
            &scratch.gated,
            &mut scratch.update,
            &mut scratch.linear,
        );
        add(x, &scratch.update);
    }

    /// Rotates queries and keys, writes keys and values to the caches, and attends, sequence by
    /// sequence.
    fn attend(
        &self,
        pass: Pass<'_>,
        index: usize,
        batch: &mut [Segment<'_, LlamaCache>],
        scratch: &mut LayerScratch,
    ) {
        let width = self.qkv.outputs();
        let mut qkv = scratch.qkv.as_mut_slice();
        let mut attended = scratch.attended.as_mut_slice();
        for (segment, tree) in batch.iter_mut().zip(pass.trees) {
            let rows = segment.tokens.len();
            let (start, trunk) = (segment.cache.len(), segment.trunk());
            let cache = &mut segment.cache.layers[index];
            let (segment_qkv, rest) = qkv.split_at_mut(rows * width);
            qkv = rest;
            for (row, qkv) in segment_qkv.chunks_exact_mut(width).enumerate() {
                let depth = row.checked_sub(trunk).map(|node| tree.path(node).len() - 1);
                let position = start + depth.map_or(row, |depth| trunk + depth);
                let (query, key_value) = qkv.split_at_mut(self.query_dim);
                let (key, value) = key_value.split_at_mut(self.kv_dim);
                pass.rotary.apply(query, position);
                pass.rotary.apply(key, position);
                cache.write(start + row, key, value);
            }
            let (output, rest) = attended.split_at_mut(rows * self.query_dim);
            attended = rest;
            let view = View {
                cache,
                start,
                trunk,
                tree,
            };
            self.attend_rows(pass.level, view, segment_qkv, output, &mut scratch.scores);
        }
    }

    /// Attends with each row of `qkv`.
    fn attend_rows(
        &self,
        level: Level,
        view: View<'_>,
        qkv: &[f32],
        output: &mut [f32],
        scores: &mut Vec<f32>,
    ) {
        let width = self.qkv.outputs();
        let attend = |row: usize, qkv: &[f32], output: &mut [f32], scores: &mut Vec<f32>| {
            let (visible, branch) = view.of(row);
            level.run(Attention {
                query: &qkv[..self.query_dim],
                cache: view.cache,
                visible,
                branch,
                scores,
                output,
            });
        };
        let rows = qkv.len() / width;
        if 2 * output.len() * (view.start + rows) < PARALLEL_WORK {
            let rows = qkv
                .chunks_exact(width)
                .zip(output.chunks_exact_mut(self.query_dim));
            for (row, (qkv, output)) in rows.enumerate() {
                attend(row, qkv, output, scores);
            }
        } else {
            qkv.par_chunks_exact(width)
                .zip(output.par_chunks_exact_mut(self.query_dim))
                .enumerate()
                .for_each_init(Vec::new, |scores, (row, (qkv, output))| {
                    attend(row, qkv, output, scores);
                });
        }
    }
}

fn add(x: &mut [f32], update: &[f32]) {
    for (x, update) in x.iter_mut().zip(update) {
        *x += update;
    }
}
