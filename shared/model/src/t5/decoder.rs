//! One layer of the decoder: it attends to the output so far, then to the source.

use speculation::{
    ports::{KvCache, Segment},
    tree_paths::TreePaths,
};

use super::{
    T5Loader,
    attention::{Projections, attend, load_parts},
    feed_forward::FeedForward,
    position::RelativeBias,
};
use crate::{
    attention::{View, Views},
    cache::{CpuCache, LayerCache},
    cpu::Cpu,
    ends::LayerScratch,
    linear::Linear,
    weights::WeightsError,
};

#[derive(Clone, Debug)]
pub(super) struct DecoderLayer {
    attention: Projections,
    /// Of attention to the source.
    cross: Projections,
    /// Key and value, of the encoder's hidden states: `(2 * heads * head_dim, hidden)`.
    source: Linear,
    feed_forward: FeedForward,
    /// Heads times dimensions of each.
    inner: usize,
}

/// What every layer of a forward works with.
#[derive(Clone, Copy)]
pub(super) struct T5Pass<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) bias: &'a RelativeBias,
    /// The tree that each segment ends in.
    pub(super) trees: &'a [TreePaths],
}

impl DecoderLayer {
    pub(super) fn load(loader: &T5Loader<'_>, index: usize) -> Result<Self, WeightsError> {
        const CROSS: &str = "EncDecAttention";
        let name = |sublayer| format!("decoder.block.{index}.layer.{sublayer}");
        let source = format!("{}.{CROSS}", name(1));
        Ok(Self {
            attention: Projections::load(loader, &name(0), "SelfAttention", &["q", "k", "v"])?,
            cross: Projections::load(loader, &name(1), CROSS, &["q"])?,
            source: load_parts(loader, &source, &["k", "v"])?,
            feed_forward: FeedForward::load(loader, &name(2))?,
            inner: loader.config.heads * loader.config.head_dim,
        })
    }

    /// Writes this layer's key and value of each of the encoder's hidden states to `cache`.
    pub(super) fn read_source(
        &self,
        cpu: &Cpu,
        states: &[f32],
        cache: &mut LayerCache,
        scratch: &mut LayerScratch,
    ) {
        let (inner, width) = (self.inner, 2 * self.inner);
        let (projected, linear) = (&mut scratch.projected, &mut scratch.linear);
        projected.resize(states.len() / self.source.inputs() * width, 0.0);
        self.source.forward(cpu, states, projected, linear);
        for (position, row) in projected.chunks_exact(width).enumerate() {
            let (key, value) = row.split_at(inner);
            cache.write(position, key, value);
        }
    }

    /// Takes the hidden states `x`, `(rows, hidden)`, of all segments through this layer, the `index`-th,
    /// and writes their keys and values to the caches.
    pub(super) fn forward(
        &self,
        pass: T5Pass<'_>,
        index: usize,
        batch: &mut [Segment<'_, CpuCache>],
        x: &mut [f32],
        scratch: &mut LayerScratch,
    ) {
        let cpu = pass.cpu;
        self.attention.project(cpu, x, scratch);
        self.attend_to_output(pass, index, batch, scratch);
        self.attention.finish(cpu, x, scratch);
        self.cross.project(cpu, x, scratch);
        let layer = index;
        attend(cpu, self.inner, &CrossViews { batch, layer }, scratch);
        self.cross.finish(cpu, x, scratch);
        self.feed_forward.forward(cpu, x, scratch);
    }

    fn attend_to_output(
        &self,
        pass: T5Pass<'_>,
        layer: usize,
        batch: &mut [Segment<'_, CpuCache>],
        scratch: &mut LayerScratch,
    ) {
        let (inner, width) = (self.inner, 3 * self.inner);
        let mut rows = scratch.projected.chunks_exact(width);
        for segment in &mut *batch {
            let start = segment.cache.len();
            let cache = &mut segment.cache.layers[layer];
            for (slot, qkv) in (start..start + segment.tokens.len()).zip(&mut rows) {
                cache.write(slot, &qkv[inner..2 * inner], &qkv[2 * inner..]);
            }
        }
        let views = OutputViews { pass, batch, layer };
        attend(pass.cpu, width, &views, scratch);
    }
}

/// What the rows of a batch see of their own sequences' output.
struct OutputViews<'a, 'b> {
    pass: T5Pass<'a>,
    batch: &'a [Segment<'b, CpuCache>],
    /// Index of the layer.
    layer: usize,
}

impl Views for OutputViews<'_, '_> {
    fn segments(&self) -> usize {
        self.batch.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.batch[segment].tokens.len()
    }

    fn cache(&self, segment: usize) -> &LayerCache {
        &self.batch[segment].cache.layers[self.layer]
    }

    fn view(&self, segment: usize, row: usize) -> View<'_> {
        let view = View::of_row(&self.batch[segment], &self.pass.trees[segment], row);
        View {
            // A node's position is its depth.
            bias: Some(self.pass.bias.at(view.visible - 1)),
            ..view
        }
    }
}

/// What they see of their sources: all.
struct CrossViews<'a, 'b> {
    batch: &'a [Segment<'b, CpuCache>],
    layer: usize,
}

impl CrossViews<'_, '_> {
    fn source(&self, segment: usize) -> (&LayerCache, usize) {
        let cross = self.batch[segment].cache.cross();
        let cross = cross.expect("the forward's check lets no segment without a source through");
        (&cross.layers[self.layer], cross.len())
    }
}

impl Views for CrossViews<'_, '_> {
    fn segments(&self) -> usize {
        self.batch.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.batch[segment].tokens.len()
    }

    fn cache(&self, segment: usize) -> &LayerCache {
        self.source(segment).0
    }

    fn view(&self, segment: usize, _row: usize) -> View<'_> {
        View {
            visible: self.source(segment).1,
            branch: &[],
            bias: None,
        }
    }
}
