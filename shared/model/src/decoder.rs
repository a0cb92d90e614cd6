//! Decoder-only models: layers of grouped-query attention with rotary positions, and gated feed-forward
//! networks, each behind a root mean square norm. Families differ by what [`ModelConfig`] says.

mod heads;
mod layer;
mod loading;
pub(crate) mod tensors;

use std::sync::Arc;

use speculation::ports::{KvCache, KvMemory, LanguageModel, ModelShape, Rows, Segment};

use self::{
    layer::{GatedLayer, LayerPass},
    loading::LayerWeights,
    tensors::TensorNames,
};
use crate::{
    cache::{CpuCache, PagePool, free_pages, memory},
    computation::CpuFormat,
    config::{ModelConfig, RopeConfig},
    cpu::Cpu,
    ends::{self, Ends, LayerScratch, States},
    forward_error::ForwardError,
    linear::{Linear, OutputOrder},
    rope::Rotary,
    weights::{Weights, WeightsError},
};

/// A model's weights, and the buffers of its forwards.
/// Shown by its sizes; the weights are millions of numbers.
#[derive(Clone, derive_more::Debug)]
#[debug("Decoder {{ config: {config:?}, .. }}")]
pub struct Decoder {
    config: ModelConfig,
    cpu: Cpu,
    ends: Ends,
    layers: Vec<GatedLayer>,
    rotary: Rotary,
    /// Rotation in layers with a window, where it differs.
    window_rotary: Option<Rotary>,
    /// What caches are made of; clones of the model share it.
    pool: Arc<PagePool>,
    states: States,
    scratch: LayerScratch,
}

impl Decoder {
    /// Reads every tensor and brings it to the format of weights. `weights` are those of a
    /// [`Checkpoint`](crate::Checkpoint), which knows in what order rows stand.
    ///
    /// # Errors
    /// If a tensor is missing, or has another shape than `config` implies; the message names it.
    pub fn load(
        config: &ModelConfig,
        weights: &Weights,
        format: impl Into<CpuFormat>,
    ) -> Result<Self, WeightsError> {
        let CpuFormat {
            weights: format,
            kv,
        } = format.into();
        let hidden = config.hidden_size;
        let names = TensorNames::of(weights);
        let table = |name: String| -> Result<Linear, WeightsError> {
            weights.linear(
                &[(name, [config.vocab_size, hidden])],
                None,
                format,
                OutputOrder::AsGiven,
            )
        };
        let layer = |index: usize| {
            let weights = LayerWeights {
                config,
                weights,
                names,
                index,
                format,
            };
            GatedLayer::load(config, index, &weights)
        };
        let rotary = |rope: &RopeConfig| Rotary::new(rope, config.head_dim, config.context_len);
        Ok(Self {
            cpu: Cpu::detect(),
            ends: Ends {
                embedding: table(names.embedding())?,
                norm: loading::norm(config, weights.tensor(&names.norm(), &[hidden])?),
                own_head: (!config.tie_word_embeddings)
                    .then(|| table(names.head()))
                    .transpose()?,
            },
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            rotary: config.rope.as_ref().map(rotary).unwrap_or_default(),
            window_rotary: config.window_rope.as_ref().map(rotary),
            pool: PagePool::new(config.kv_heads, config.head_dim, kv),
            states: States::default(),
            scratch: LayerScratch::default(),
            config: config.clone(),
        })
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns the matrices of a forward, in the order of their products.
    pub fn matrices(&self) -> impl Iterator<Item = &Linear> {
        let layers = self.layers.iter().flat_map(GatedLayer::matrices);
        layers.chain([self.ends.head()])
    }
}

impl LanguageModel for Decoder {
    type Cache = CpuCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        self.config.shape()
    }

    fn new_cache(&self) -> CpuCache {
        let windows = (0..self.config.layers).map(|layer| self.config.window_of(layer));
        CpuCache::new(&self.pool, windows)
    }

    fn memory(&self) -> Option<KvMemory> {
        Some(memory(&self.pool, self.config.layers))
    }

    fn free_pages(&self) -> Option<usize> {
        free_pages(&self.pool)
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, CpuCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        self.states.check(&self.config, batch)?;
        let _running = self.cpu.threads.open();
        ends::reserve(batch);
        let held = |part: &Segment<'_, CpuCache>| part.cache.len() + part.tokens.len();
        let longest = batch.iter().map(held).max().unwrap_or(0);
        self.rotary.reserve(longest);
        if let Some(rotary) = &mut self.window_rotary {
            rotary.reserve(longest);
        }
        let tokens = batch.iter().flat_map(|segment| segment.tokens);
        self.ends.embed(&self.config, tokens, &mut self.states.x);
        for (index, layer) in self.layers.iter().enumerate() {
            let after = self.layers.get(index + 1).map(GatedLayer::first);
            let pass = LayerPass {
                cpu: &self.cpu,
                rotary: &self.rotary,
                window_rotary: self.window_rotary.as_ref(),
                trees: &self.states.trees,
                next: after.unwrap_or(self.ends.head()),
            };
            layer.forward(pass, index, batch, &mut self.states.x, &mut self.scratch);
        }
        self.ends.score(
            (&self.config, &self.cpu),
            self.layers.first().map(GatedLayer::first),
            batch,
            &mut self.states,
            &mut self.scratch.linear,
            rows,
        );
        ends::written(batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
