//! Decoder-only models: layers of grouped-query attention with rotary positions, and gated feed-forward
//! networks, each behind a root mean square norm. Families differ by what [`ModelConfig`] says.

mod heads;
mod layer;
mod loading;
pub mod products;
pub(crate) mod tensors;

use std::{fmt, sync::Arc};

use speculation::{
    ports::{KvCache, KvMemory, LanguageModel, ModelShape, Rows, Segment},
    tree_paths::TreePaths,
};

use self::{
    layer::{Layer, LayerScratch, Pass},
    loading::LayerWeights,
    tensors::TensorNames,
};
use crate::{
    activation::SoftCap,
    cache::{PagePool, SequenceCache, memory},
    computation::CpuFormat,
    config::{ModelConfig, RopeConfig},
    cpu::Cpu,
    forward_error::ForwardError,
    linear::{Linear, Order},
    load_progress::LoadProgress,
    norm::RmsNorm,
    rope::Rotary,
    weights::{Weights, WeightsError},
};

/// A model's weights, and the buffers of its forwards.
#[derive(Clone)]
pub struct Decoder {
    config: ModelConfig,
    cpu: Cpu,
    embedding: Linear,
    layers: Vec<Layer>,
    norm: RmsNorm,
    /// `None` if the embedding table serves.
    head: Option<Linear>,
    rotary: Rotary,
    /// Rotation in layers with a window, where it differs.
    window_rotary: Option<Rotary>,
    /// What caches are made of; clones of the model share it.
    pool: Arc<PagePool>,
    scratch: Scratch,
}

/// Buffers that forwards reuse, so that decoding does not allocate.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// The tree that each segment ends in.
    trees: Vec<TreePaths>,
    /// Hidden states, `(rows, hidden)`.
    x: Vec<f32>,
    /// Hidden states of the scored rows, before the final norm and after it.
    scored: Vec<f32>,
    normed: Vec<f32>,
    layer: LayerScratch,
}

impl fmt::Debug for Decoder {
    /// Names the sizes; the weights are millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// Reads every tensor and brings it to the format of weights.
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
                Order::AsGiven,
            )
        };
        let mut progress = LoadProgress::of(config.layers);
        let layer = |index: usize| {
            progress.tell(index);
            let weights = LayerWeights {
                config,
                weights,
                names,
                index,
                format,
            };
            Layer::load(config, index, &weights)
        };
        let rotary = |rope: RopeConfig| Rotary::new(rope.theta, config.head_dim, rope.scaling);
        Ok(Self {
            cpu: Cpu::detect(),
            embedding: table(names.embedding())?,
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            norm: loading::norm(config, weights.tensor(&names.norm(), &[hidden])?),
            head: if config.tie_word_embeddings {
                None
            } else {
                Some(table(names.head())?)
            },
            rotary: config.rope.map_or_else(Rotary::none, rotary),
            window_rotary: config.window_rope.map(rotary),
            pool: PagePool::new(config.kv_heads, config.head_dim, kv),
            scratch: Scratch::default(),
            config: config.clone(),
        })
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Reads the trees, and refuses what cannot be forwarded.
    fn check(&mut self, batch: &[Segment<'_, SequenceCache>]) -> Result<(), ForwardError> {
        let (vocab_size, context_len) = (self.config.vocab_size, self.config.context_len);
        let trees = &mut self.scratch.trees;
        if trees.len() < batch.len() {
            trees.resize_with(batch.len(), TreePaths::default);
        }
        for (segment, tree) in batch.iter().zip(trees) {
            if let Some(from) = segment.cache.tree_from() {
                return Err(ForwardError::TreeInCache { from });
            }
            tree.read(segment.parents, segment.tokens.len())?;
            let tokens = segment.cache.len() + segment.trunk() + tree.depth();
            if tokens > context_len {
                return Err(ForwardError::ContextExceeded {
                    tokens,
                    context_len,
                });
            }
            let unknown = segment
                .tokens
                .iter()
                .find(|token| **token as usize >= vocab_size);
            if let Some(&token) = unknown {
                return Err(ForwardError::TokenOutOfRange { token, vocab_size });
            }
        }
        Ok(())
    }

    /// Writes the embeddings of all tokens to `scratch.x`, `(rows, hidden)`.
    fn embed(&mut self, batch: &[Segment<'_, SequenceCache>]) {
        let hidden = self.config.hidden_size;
        let rows: usize = batch.iter().map(|segment| segment.tokens.len()).sum();
        self.scratch.x.resize(rows * hidden, 0.0);
        let tokens = batch.iter().flat_map(|segment| segment.tokens);
        for (row, token) in self.scratch.x.chunks_exact_mut(hidden).zip(tokens) {
            self.embedding.read_row(*token as usize, row);
            if let Some(scale) = self.config.embedding_scale {
                for x in row {
                    *x *= scale;
                }
            }
        }
    }

    /// Gathers the scored rows, normalises them and applies the LM head.
    fn score(&mut self, batch: &[Segment<'_, SequenceCache>], rows: &mut Rows) {
        let hidden = self.config.hidden_size;
        let scratch = &mut self.scratch;
        scratch.scored.clear();
        let mut first = 0;
        for segment in batch {
            let next = first + segment.tokens.len();
            let scored = (first + segment.scored_from).min(next);
            scratch
                .scored
                .extend_from_slice(&scratch.x[scored * hidden..next * hidden]);
            first = next;
        }
        scratch.normed.resize(scratch.scored.len(), 0.0);
        self.norm
            .forward(self.cpu.level, &scratch.scored, &mut scratch.normed);

        let count = scratch.scored.len() / hidden;
        rows.vocab_size = self.config.vocab_size;
        rows.logits.resize(count * self.config.vocab_size, 0.0);
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        head.forward_before(
            self.layers.first().map(Layer::first),
            &self.cpu,
            &scratch.normed,
            &mut rows.logits,
            &mut scratch.layer.linear,
        );
        if let Some(cap) = self.config.logit_softcap {
            let values = &mut rows.logits;
            self.cpu.level.run(SoftCap { cap, values });
        }
        rows.hidden.clear();
        if rows.want_hidden {
            rows.hidden.extend_from_slice(&scratch.normed);
        }
    }
}

impl LanguageModel for Decoder {
    type Cache = SequenceCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: self.config.vocab_size,
            hidden_size: self.config.hidden_size,
            context_len: self.config.context_len,
            source_len: 0,
        }
    }

    fn new_cache(&self) -> SequenceCache {
        let windows = (0..self.config.layers).map(|layer| self.config.window_of(layer));
        SequenceCache::new(&self.pool, windows)
    }

    fn memory(&self) -> Option<KvMemory> {
        Some(memory(&self.pool, self.config.layers))
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, SequenceCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        self.check(batch)?;
        let threads = self.cpu.threads.clone();
        let _running = threads.open();
        for segment in &mut *batch {
            let len = segment.cache.len() + segment.tokens.len();
            segment.cache.reserve(len);
            self.rotary.reserve(len);
            if let Some(rotary) = &mut self.window_rotary {
                rotary.reserve(len);
            }
        }
        self.embed(batch);
        for (index, layer) in self.layers.iter().enumerate() {
            let Scratch {
                trees,
                x,
                layer: scratch,
                ..
            } = &mut self.scratch;
            let after = self.layers.get(index + 1).map(Layer::first);
            let head = self.head.as_ref().unwrap_or(&self.embedding);
            let pass = Pass {
                cpu: &self.cpu,
                rotary: &self.rotary,
                window_rotary: self.window_rotary.as_ref(),
                trees,
                next: after.unwrap_or(head),
            };
            layer.forward(pass, index, batch, x, scratch);
        }
        self.score(batch, rows);
        for segment in batch {
            let len = segment.cache.len() + segment.tokens.len();
            let tree_from = len - segment.parents.len();
            let has_tree = !segment.parents.is_empty();
            segment.cache.set_len(len, has_tree.then_some(tree_from));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
