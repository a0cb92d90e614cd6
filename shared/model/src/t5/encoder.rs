//! The encoder: every position of the source sees every other.

use std::sync::Arc;

use super::{
    Scratch,
    attention::{SelfAttention, attend},
    feed_forward::FeedForward,
    load_bias, load_final_norm,
    position::{Direction, RelativeBias},
};
use crate::{
    attention::{View, Views},
    cache::{LayerCache, PagePool, SequenceCache},
    config::{EncoderConfig, ModelConfig},
    cpu::Cpu,
    linear::WeightFormat,
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

#[derive(Clone, Debug)]
pub(super) struct Encoder {
    layers: Vec<(SelfAttention, FeedForward)>,
    bias: RelativeBias,
    norm: RmsNorm,
    /// Heads times dimensions of each.
    inner: usize,
}

/// What the positions of a source see of one another.
struct SourceViews<'a> {
    cache: &'a LayerCache,
    positions: usize,
    bias: &'a RelativeBias,
}

impl Views for SourceViews<'_> {
    fn segments(&self) -> usize {
        1
    }

    fn rows(&self, _segment: usize) -> usize {
        self.positions
    }

    fn cache(&self, _segment: usize) -> &LayerCache {
        self.cache
    }

    fn view(&self, _segment: usize, row: usize) -> View<'_> {
        View {
            visible: self.positions,
            branch: &[],
            bias: Some(self.bias.at(row)),
        }
    }
}

impl Encoder {
    pub(super) fn load(
        config: &ModelConfig,
        encoder: &EncoderConfig,
        weights: &Weights,
        format: WeightFormat,
    ) -> Result<Self, WeightsError> {
        let layer = |index| {
            let name = |sublayer| format!("encoder.block.{index}.layer.{sublayer}");
            Ok((
                SelfAttention::load(config, weights, &name(0), format)?,
                FeedForward::load(config, weights, &name(1), format)?,
            ))
        };
        Ok(Self {
            layers: (0..encoder.layers).map(layer).collect::<Result<_, _>>()?,
            bias: load_bias(config, encoder, weights, "encoder", Direction::Both)?,
            norm: load_final_norm(config, weights, "encoder")?,
            inner: config.heads * config.head_dim,
        })
    }

    /// Takes the embeddings `x` of a source, `(positions, hidden)`, through all layers, and writes the last
    /// hidden states, normalised, to `states`, of the same shape. Keys and values stand in pages of `pool`
    /// meanwhile.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        pool: &Arc<PagePool>,
        x: &mut [f32],
        states: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) {
        let positions = x.len() / scratch.hidden;
        // One layer's keys and values serve all, one after the other.
        let mut cache = SequenceCache::new(pool, [None]);
        cache.reserve(positions);
        let cache = &mut cache.layers[0];
        for (attention, feed_forward) in &self.layers {
            attention.project(cpu, x, scratch);
            let inner = self.inner;
            for (position, row) in scratch.projected.chunks_exact(3 * inner).enumerate() {
                cache.write(position, &row[inner..2 * inner], &row[2 * inner..]);
            }
            let views = SourceViews {
                cache,
                positions,
                bias: &self.bias,
            };
            attend(cpu, 3 * inner, &views, scratch);
            attention.finish(cpu, x, scratch);
            feed_forward.forward(cpu, x, scratch);
        }
        states.resize(x.len(), 0.0);
        self.norm.forward(cpu.level, x, states);
    }
}
