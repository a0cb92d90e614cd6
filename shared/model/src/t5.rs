//! The T5 architecture (Raffel et al. 2020): an encoder reads the source once, and a decoder writes the
//! output, attending to itself and to what the encoder made. Positions are biases of the scores, by distance.
//!
//! A sequence's tokens are those of the decoder, start token first; the source is told by
//! [`LanguageModel::encode`]. Sources are encoded one at a time and whole, so what a position of the output
//! sees of its source depends on nothing else.

mod attention;
mod decoder;
mod encoder;
mod feed_forward;
mod loading;
mod position;

use std::sync::Arc;

use speculation::{
    TokenId,
    ports::{KvMemory, LanguageModel, ModelShape, Rows, Segment},
};

use self::{
    decoder::{DecoderLayer, T5Pass},
    encoder::T5Encoder,
    loading::{EMBEDDING, T5Loader},
    position::{Direction, RelativeBias},
};
use crate::{
    cache::{CpuCache, PagePool, free_pages, memory},
    computation::CpuFormat,
    config::ModelConfig,
    cpu::Cpu,
    ends::{self, Ends, LayerScratch, States},
    forward_error::{ForwardError, check_source},
    weights::{Weights, WeightsError},
};

/// A model's weights, and the buffers of its forwards.
/// Shown by its sizes; the weights are millions of numbers.
#[derive(Clone, derive_more::Debug)]
#[debug("T5 {{ config: {config:?}, .. }}")]
pub struct T5 {
    config: ModelConfig,
    cpu: Cpu,
    /// The embedding table serves encoder and decoder.
    ends: Ends,
    encoder: T5Encoder,
    layers: Vec<DecoderLayer>,
    bias: RelativeBias,
    /// What caches are made of; clones of the model share it.
    pool: Arc<PagePool>,
    /// What they hold of the sources. Not counted as memory of the sequences: a source cannot be cut to fit,
    /// and there are no more of them than sequences.
    sources: Arc<PagePool>,
    states: States,
    scratch: LayerScratch,
}

impl T5 {
    /// Reads every tensor and brings it to the format of weights.
    ///
    /// # Errors
    /// If a tensor is missing, or has another shape than `config` implies; the message names it.
    ///
    /// # Panics
    /// If `config` has no encoder.
    pub fn load(
        config: &ModelConfig,
        weights: &Weights,
        format: impl Into<CpuFormat>,
    ) -> Result<Self, WeightsError> {
        let CpuFormat {
            weights: format,
            kv,
        } = format.into();
        let encoder = config.encoder.as_ref();
        let loader = T5Loader {
            config,
            encoder: encoder.expect("a T5 without an encoder is none"),
            weights,
            format,
        };
        Ok(Self {
            cpu: Cpu::detect(),
            ends: Ends {
                embedding: loader.table(EMBEDDING)?,
                own_head: loader.head()?,
                norm: loader.norm("decoder.final_layer_norm")?,
            },
            encoder: T5Encoder::load(&loader)?,
            layers: (0..config.layers)
                .map(|index| DecoderLayer::load(&loader, index))
                .collect::<Result<_, _>>()?,
            bias: loader.bias("decoder", Direction::Back)?,
            pool: PagePool::new(config.heads, config.head_dim, kv),
            sources: PagePool::new(config.heads, config.head_dim, kv),
            states: States::default(),
            scratch: LayerScratch::default(),
            config: config.clone(),
        })
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }
}

impl LanguageModel for T5 {
    type Cache = CpuCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        self.config.shape()
    }

    fn new_cache(&self) -> CpuCache {
        CpuCache::new(&self.pool, vec![None; self.config.layers])
    }

    fn memory(&self) -> Option<KvMemory> {
        Some(memory(&self.pool, self.config.layers))
    }

    fn free_pages(&self) -> Option<usize> {
        free_pages(&self.pool)
    }

    fn encode(&mut self, cache: &mut CpuCache, source: &[TokenId]) -> Result<(), ForwardError> {
        if source.is_empty() {
            return Err(ForwardError::EmptySource);
        }
        check_source(source, self.shape())?;
        let _running = self.cpu.threads.open();
        let (cpu, states, scratch) = (&self.cpu, &mut self.states, &mut self.scratch);
        self.ends.embed(&self.config, source.iter(), &mut states.x);
        let (x, last) = (&mut states.x, &mut states.last);
        self.encoder
            .forward(cpu, &self.sources, source.len(), x, last, scratch);
        let mut cross = CpuCache::new(&self.sources, vec![None; self.config.layers]);
        cross.reserve(source.len());
        for (layer, cache) in self.layers.iter().zip(&mut cross.layers) {
            layer.read_source(cpu, last, cache, scratch);
        }
        cross.set_len(source.len(), None);
        cache.set_cross(cross);
        Ok(())
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, CpuCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        if batch.iter().any(|segment| segment.cache.cross().is_none()) {
            return Err(ForwardError::NoSource);
        }
        self.states.check(&self.config, batch)?;
        let _running = self.cpu.threads.open();
        ends::reserve(batch);
        let tokens = batch.iter().flat_map(|segment| segment.tokens);
        self.ends.embed(&self.config, tokens, &mut self.states.x);
        let pass = T5Pass {
            cpu: &self.cpu,
            bias: &self.bias,
            trees: &self.states.trees,
        };
        for (index, layer) in self.layers.iter().enumerate() {
            layer.forward(pass, index, batch, &mut self.states.x, &mut self.scratch);
        }
        let linear = &mut self.scratch.linear;
        let model = (&self.config, &self.cpu);
        self.ends
            .score(model, None, batch, &mut self.states, linear, rows);
        ends::written(batch);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
