//! The Llama architecture: decoder layers of grouped-query attention with rotary positions, and
//! gated feed-forward networks, each behind a root mean square norm.

mod layer;

use std::fmt;

use speculation::{
    TokenId,
    draft_tree::BadTree,
    ports::{KvCache, LanguageModel, ModelShape, Rows, Segment},
    simd::Level,
    tree_paths::TreePaths,
};
use thiserror::Error;

use self::layer::{Layer, LayerScratch, Pass};

use crate::{
    cache::LlamaCache,
    config::ModelConfig,
    linear::{Linear, WeightFormat},
    norm::RmsNorm,
    rope::Rotary,
    weights::{Weights, WeightsError},
};

/// A model's weights, and the buffers of its forwards.
#[derive(Clone)]
pub struct Llama {
    config: ModelConfig,
    level: Level,
    embedding: Linear,
    layers: Vec<Layer>,
    norm: RmsNorm,
    /// `None` if the embedding table serves.
    head: Option<Linear>,
    rotary: Rotary,
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

impl fmt::Debug for Llama {
    /// Names the sizes; the weights are millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llama")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Why a forward was refused. No cache has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ForwardError {
    /// A token the embedding table does not have.
    #[error("token {token} is not in the vocabulary of {vocab_size}")]
    TokenOutOfRange {
        /// The token.
        token: TokenId,
        /// Entries of the embedding table.
        vocab_size: usize,
    },
    /// A sequence longer than the model's context. Of a tree the longest path counts: its other nodes
    /// take room in the cache, but no position.
    #[error("the model's context is {context_len} tokens, the sequence would have {tokens}")]
    ContextExceeded {
        /// Tokens the sequence would have.
        tokens: usize,
        /// Tokens the model can hold.
        context_len: usize,
    },
    /// Parents that make no tree.
    #[error("the tree is refused")]
    Tree(#[from] BadTree),
    /// Tokens cannot follow a whole tree.
    #[error("the cache holds a tree from token {from} on, of which no path was kept")]
    TreeInCache {
        /// Where it begins.
        from: usize,
    },
}

impl Llama {
    /// Reads every tensor and brings it to `format`.
    ///
    /// # Errors
    /// If a tensor is missing, or has another shape than `config` implies; the message names it.
    pub fn load(
        config: &ModelConfig,
        weights: &Weights,
        format: WeightFormat,
    ) -> Result<Self, WeightsError> {
        let (vocab, hidden) = (config.vocab_size, config.hidden_size);
        let table = |name: &str| -> Result<Linear, WeightsError> {
            let values = weights.tensor(name, &[vocab, hidden])?;
            Ok(Linear::new(&values, None, hidden, format))
        };
        Ok(Self {
            level: Level::detect(),
            embedding: table("model.embed_tokens.weight")?,
            layers: (0..config.layers)
                .map(|index| Layer::load(config, weights, index, format))
                .collect::<Result<_, _>>()?,
            norm: RmsNorm::new(
                weights.tensor("model.norm.weight", &[hidden])?,
                config.rms_norm_eps,
            ),
            head: if config.tie_word_embeddings {
                None
            } else {
                Some(table("lm_head.weight")?)
            },
            rotary: Rotary::new(config.rope_theta, config.head_dim, config.rope_scaling),
            scratch: Scratch::default(),
            config: config.clone(),
        })
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Reads the trees, and refuses what cannot be forwarded.
    fn check(&mut self, batch: &[Segment<'_, LlamaCache>]) -> Result<(), ForwardError> {
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
    fn embed(&mut self, batch: &[Segment<'_, LlamaCache>]) {
        let hidden = self.config.hidden_size;
        let rows: usize = batch.iter().map(|segment| segment.tokens.len()).sum();
        self.scratch.x.resize(rows * hidden, 0.0);
        let tokens = batch.iter().flat_map(|segment| segment.tokens);
        for (row, token) in self.scratch.x.chunks_exact_mut(hidden).zip(tokens) {
            self.embedding.read_row(*token as usize, row);
        }
    }

    /// Gathers the scored rows, normalises them and applies the LM head.
    fn score(&mut self, batch: &[Segment<'_, LlamaCache>], rows: &mut Rows) {
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
            .forward(self.level, &scratch.scored, &mut scratch.normed);

        let count = scratch.scored.len() / hidden;
        rows.vocab_size = self.config.vocab_size;
        rows.logits.resize(count * self.config.vocab_size, 0.0);
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        head.forward(
            self.level,
            &scratch.normed,
            &mut rows.logits,
            &mut scratch.layer.linear,
        );
        rows.hidden.clear();
        if rows.want_hidden {
            rows.hidden.extend_from_slice(&scratch.normed);
        }
    }
}

impl LanguageModel for Llama {
    type Cache = LlamaCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: self.config.vocab_size,
            hidden_size: self.config.hidden_size,
            context_len: self.config.context_len,
        }
    }

    fn new_cache(&self) -> LlamaCache {
        LlamaCache::new(
            self.config.layers,
            self.config.kv_heads,
            self.config.head_dim,
        )
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, LlamaCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        self.check(batch)?;
        for segment in &mut *batch {
            let len = segment.cache.len() + segment.tokens.len();
            segment.cache.reserve(len);
            self.rotary.reserve(len);
        }
        self.embed(batch);
        for (index, layer) in self.layers.iter().enumerate() {
            let Scratch {
                trees,
                x,
                layer: scratch,
                ..
            } = &mut self.scratch;
            let pass = Pass {
                level: self.level,
                rotary: &self.rotary,
                trees,
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
