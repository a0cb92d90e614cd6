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
mod position;

use std::{fmt, sync::Arc};

use speculation::{
    TokenId,
    ports::{KvCache, KvMemory, LanguageModel, ModelShape, Rows, Segment},
    tree_paths::TreePaths,
};

use self::{
    decoder::{DecoderLayer, Pass},
    encoder::Encoder,
    position::{Direction, RelativeBias},
};
use crate::{
    attention::AttentionScratch,
    cache::{CrossCache, PagePool, SequenceCache, memory},
    computation::CpuFormat,
    config::{EncoderConfig, ModelConfig, architecture::t5::relative_bias},
    cpu::Cpu,
    forward_error::ForwardError,
    linear::{Linear, LinearScratch, Order, WeightFormat},
    mlp::MlpScratch,
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

/// A model's weights, and the buffers of its forwards.
#[derive(Clone)]
pub struct T5 {
    config: ModelConfig,
    cpu: Cpu,
    /// Serves encoder and decoder.
    embedding: Linear,
    encoder: Encoder,
    layers: Vec<DecoderLayer>,
    bias: RelativeBias,
    norm: RmsNorm,
    /// `None` if the embedding table serves.
    head: Option<Linear>,
    /// What caches are made of; clones of the model share it.
    pool: Arc<PagePool>,
    /// What they hold of the sources. Not counted as memory of the sequences: a source cannot be cut to fit,
    /// and there are no more of them than sequences.
    sources: Arc<PagePool>,
    /// The tree that each segment ends in.
    trees: Vec<TreePaths>,
    /// Hidden states, `(rows, hidden)`.
    x: Vec<f32>,
    /// The encoder's, or those of the scored rows before the final norm and after it.
    states: Vec<f32>,
    normed: Vec<f32>,
    scratch: Scratch,
}

/// Buffers that layers reuse, so that decoding does not allocate.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// Width of a hidden state.
    hidden: usize,
    linear: LinearScratch,
    /// `(rows, hidden)`.
    normed: Vec<f32>,
    /// Queries, or queries, keys and values.
    projected: Vec<f32>,
    /// `(rows, heads * head_dim)`.
    attended: Vec<f32>,
    attention: AttentionScratch,
    mlp: MlpScratch,
    /// Before the function of a feed-forward network that is not gated, `(rows, intermediate)`.
    inner: Vec<f32>,
    /// After it.
    activated: Vec<f32>,
    /// What a sublayer adds to the hidden states, `(rows, hidden)`.
    update: Vec<f32>,
}

impl fmt::Debug for T5 {
    /// Names the sizes; the weights are millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("T5")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
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
        let encoder = encoder.expect("a T5 without an encoder is none");
        let shape = [config.vocab_size, config.hidden_size];
        let embedding = weights.tensor("shared.weight", &shape)?;
        Ok(Self {
            cpu: Cpu::detect(),
            head: head(config, weights, &embedding, format)?,
            embedding: Linear::new(&embedding, None, config.hidden_size, format),
            encoder: Encoder::load(config, encoder, weights, format)?,
            layers: (0..config.layers)
                .map(|index| DecoderLayer::load(config, weights, index, format))
                .collect::<Result<_, _>>()?,
            bias: load_bias(config, encoder, weights, "decoder", Direction::Back)?,
            norm: load_final_norm(config, weights, "decoder")?,
            pool: PagePool::new(config.heads, config.head_dim, kv),
            sources: PagePool::new(config.heads, config.head_dim, kv),
            trees: Vec::new(),
            x: Vec::new(),
            states: Vec::new(),
            normed: Vec::new(),
            scratch: Scratch {
                hidden: config.hidden_size,
                ..Scratch::default()
            },
            config: config.clone(),
        })
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn check_tokens(&self, tokens: &[TokenId]) -> Result<(), ForwardError> {
        let vocab_size = self.config.vocab_size;
        let known = |token: &&TokenId| (**token as usize) < vocab_size;
        match tokens.iter().find(|token| !known(token)) {
            None => Ok(()),
            Some(&token) => Err(ForwardError::TokenOutOfRange { token, vocab_size }),
        }
    }

    /// Reads the trees, and refuses what cannot be forwarded.
    fn check(&mut self, batch: &[Segment<'_, SequenceCache>]) -> Result<(), ForwardError> {
        let context_len = self.config.context_len;
        if self.trees.len() < batch.len() {
            self.trees.resize_with(batch.len(), TreePaths::default);
        }
        for (segment, tree) in batch.iter().zip(&mut self.trees) {
            if segment.cache.cross().is_none() {
                return Err(ForwardError::NoSource);
            }
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
        }
        batch
            .iter()
            .try_for_each(|segment| self.check_tokens(segment.tokens))
    }

    /// Writes the embeddings of `tokens` to `x`, `(tokens, hidden)`.
    fn embed<'a>(&mut self, tokens: impl Iterator<Item = &'a TokenId> + Clone) {
        let hidden = self.config.hidden_size;
        self.x.resize(tokens.clone().count() * hidden, 0.0);
        for (row, token) in self.x.chunks_exact_mut(hidden).zip(tokens) {
            self.embedding.read_row(*token as usize, row);
        }
    }

    /// Gathers the scored rows, normalises them and applies the LM head.
    fn score(&mut self, batch: &[Segment<'_, SequenceCache>], rows: &mut Rows) {
        let (hidden, vocab) = (self.config.hidden_size, self.config.vocab_size);
        self.states.clear();
        let mut first = 0;
        for segment in batch {
            let next = first + segment.tokens.len();
            let scored = (first + segment.scored_from).min(next);
            let scored = &self.x[scored * hidden..next * hidden];
            self.states.extend_from_slice(scored);
            first = next;
        }
        self.normed.resize(self.states.len(), 0.0);
        self.norm
            .forward(self.cpu.level, &self.states, &mut self.normed);
        rows.hidden.clear();
        if rows.want_hidden {
            rows.hidden.extend_from_slice(&self.normed);
        }
        if let Some(scale) = self.config.output_scale {
            for value in &mut self.normed {
                *value *= scale;
            }
        }
        rows.vocab_size = vocab;
        rows.logits.resize(self.states.len() / hidden * vocab, 0.0);
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        let linear = &mut self.scratch.linear;
        head.forward(&self.cpu, &self.normed, &mut rows.logits, linear);
    }
}

impl LanguageModel for T5 {
    type Cache = SequenceCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: self.config.vocab_size,
            hidden_size: self.config.hidden_size,
            context_len: self.config.context_len,
            source_len: self.config.context_len,
        }
    }

    fn new_cache(&self) -> SequenceCache {
        SequenceCache::new(&self.pool, vec![None; self.config.layers])
    }

    fn memory(&self) -> Option<KvMemory> {
        Some(memory(&self.pool, self.config.layers))
    }

    fn encode(
        &mut self,
        cache: &mut SequenceCache,
        source: &[TokenId],
    ) -> Result<(), ForwardError> {
        let (tokens, source_len) = (source.len(), self.config.context_len);
        if source.is_empty() {
            return Err(ForwardError::EmptySource);
        }
        if tokens > source_len {
            return Err(ForwardError::SourceTooLong { tokens, source_len });
        }
        self.check_tokens(source)?;
        let threads = self.cpu.threads.clone();
        let _running = threads.open();
        self.embed(source.iter());
        let (cpu, scratch) = (&self.cpu, &mut self.scratch);
        self.encoder
            .forward(cpu, &self.sources, &mut self.x, &mut self.states, scratch);
        let mut cross = SequenceCache::new(&self.sources, vec![None; self.config.layers]);
        cross.reserve(tokens);
        for (layer, cache) in self.layers.iter().zip(&mut cross.layers) {
            layer.read_source(cpu, &self.states, cache, scratch);
        }
        cross.set_len(tokens, None);
        cache.set_cross(CrossCache::new(cross));
        Ok(())
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
        }
        self.embed(batch.iter().flat_map(|segment| segment.tokens));
        let pass = Pass {
            cpu: &self.cpu,
            bias: &self.bias,
            trees: &self.trees,
        };
        for (index, layer) in self.layers.iter().enumerate() {
            layer.forward(pass, index, batch, &mut self.x, &mut self.scratch);
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

/// The LM head, if it is not the embedding table. A file that was saved anew may call it tied and yet hold
/// one of its own: what it holds is what the model was trained with.
fn head(
    config: &ModelConfig,
    weights: &Weights,
    embedding: &[f32],
    format: WeightFormat,
) -> Result<Option<Linear>, WeightsError> {
    const NAME: &str = "lm_head.weight";
    if config.tie_word_embeddings && !weights.contains(NAME) {
        return Ok(None);
    }
    let values = weights.tensor(NAME, &[config.vocab_size, config.hidden_size])?;
    let own = values != embedding;
    Ok(own.then(|| Linear::new(&values, None, config.hidden_size, format)))
}

/// Several projections of one input as one matrix; each of the tensors `names` has the shape `shape`.
fn stack(
    weights: &Weights,
    names: &[String],
    shape: [usize; 2],
    format: WeightFormat,
) -> Result<Linear, WeightsError> {
    stack_in(Order::AsGiven, weights, names, shape, format)
}

/// The same, its outputs in `order`.
fn stack_in(
    order: Order,
    weights: &Weights,
    names: &[String],
    shape: [usize; 2],
    format: WeightFormat,
) -> Result<Linear, WeightsError> {
    let mut matrix = Vec::new();
    for name in names {
        matrix.extend(weights.tensor(name, &shape)?);
    }
    Ok(Linear::in_order(order, &matrix, None, shape[1], format))
}

/// The norm before the sublayer called `name`.
fn load_norm(config: &ModelConfig, weights: &Weights, name: &str) -> Result<RmsNorm, WeightsError> {
    let name = format!("{name}.layer_norm.weight");
    let weight = weights.tensor(&name, &[config.hidden_size])?;
    Ok(RmsNorm::new(weight, config.rms_norm_eps))
}

/// The norm after the last layer of `stack`.
fn load_final_norm(
    config: &ModelConfig,
    weights: &Weights,
    stack: &str,
) -> Result<RmsNorm, WeightsError> {
    let name = format!("{stack}.final_layer_norm.weight");
    let weight = weights.tensor(&name, &[config.hidden_size])?;
    Ok(RmsNorm::new(weight, config.rms_norm_eps))
}

/// The relative position bias of `stack`.
fn load_bias(
    config: &ModelConfig,
    encoder: &EncoderConfig,
    weights: &Weights,
    stack: &str,
    direction: Direction,
) -> Result<RelativeBias, WeightsError> {
    let (heads, len) = (config.heads, config.context_len);
    let weights = weights.tensor(&relative_bias(stack), &[encoder.relative_buckets, heads])?;
    Ok(RelativeBias::new(&weights, heads, encoder, direction, len))
}

fn add(x: &mut [f32], update: &[f32]) {
    for (x, update) in x.iter_mut().zip(update) {
        *x += update;
    }
}

#[cfg(test)]
mod tests;
