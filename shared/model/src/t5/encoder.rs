//! The encoder: every position of the source sees every other.

use std::sync::Arc;

use super::{
    T5Loader,
    attention::{Projections, attend},
    feed_forward::FeedForward,
    position::{Direction, RelativeBias},
};
use crate::{
    attention::{View, Views},
    cache::{CpuCache, LayerCache, PagePool},
    cpu::Cpu,
    ends::LayerScratch,
    norm::RmsNorm,
    weights::WeightsError,
};

#[derive(Clone, Debug)]
pub(super) struct T5Encoder {
    layers: Vec<(Projections, FeedForward)>,
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

impl T5Encoder {
    pub(super) fn load(loader: &T5Loader<'_>) -> Result<Self, WeightsError> {
        let layer = |index| -> Result<_, WeightsError> {
            let name = |sublayer| format!("encoder.block.{index}.layer.{sublayer}");
            let parts = ["q", "k", "v"];
            Ok((
                Projections::load(loader, &name(0), "SelfAttention", &parts)?,
                FeedForward::load(loader, &name(1))?,
            ))
        };
        let layers = 0..loader.encoder.layers;
        Ok(Self {
            layers: layers.map(layer).collect::<Result<_, _>>()?,
            bias: loader.bias("encoder", Direction::Both)?,
            norm: loader.norm("encoder.final_layer_norm")?,
            inner: loader.config.heads * loader.config.head_dim,
        })
    }

    /// Takes the embeddings `x` of a source, `(positions, hidden)`, through all layers, and writes the last
    /// hidden states, normalised, to `states`, of the same shape. Keys and values stand in pages of `pool`
    /// meanwhile.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        pool: &Arc<PagePool>,
        positions: usize,
        x: &mut [f32],
        states: &mut Vec<f32>,
        scratch: &mut LayerScratch,
    ) {
        // One layer's keys and values serve all, one after the other.
        let mut cache = CpuCache::new(pool, [None]);
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
