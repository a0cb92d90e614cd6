//! Both ends of a model on CPUs: tokens become hidden states, and hidden states logits.

use speculation::{
    TokenId,
    ports::{KvCache, Rows, Segment},
    tree_paths::TreePaths,
};

use crate::{
    activation::SoftCap,
    attention::AttentionScratch,
    cache::CpuCache,
    config::ModelConfig,
    cpu::Cpu,
    forward_error::{ForwardError, check_segment},
    linear::{Linear, LinearScratch},
    mlp::MlpScratch,
    norm::RmsNorm,
};

/// What stands before the first layer, and after the last.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) embedding: Linear,
    pub(crate) norm: RmsNorm,
    /// The LM head; `None` if the embedding table serves.
    pub(crate) own_head: Option<Linear>,
}

/// Buffers that forwards reuse, so that decoding does not allocate.
#[derive(Clone, Debug, Default)]
pub(crate) struct States {
    /// The tree that each segment ends in.
    pub(crate) trees: Vec<TreePaths>,
    /// Hidden states, `(rows, hidden)`.
    pub(crate) x: Vec<f32>,
    /// Those of the scored rows before the final norm, or an encoder's last.
    pub(crate) last: Vec<f32>,
    /// After the norm.
    normed: Vec<f32>,
}

/// Buffers that layers reuse.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerScratch {
    pub(crate) linear: LinearScratch,
    /// `(rows, hidden)`.
    pub(crate) normed: Vec<f32>,
    /// Queries, or queries, keys and values.
    pub(crate) projected: Vec<f32>,
    /// `(rows, heads * head_dim)`.
    pub(crate) attended: Vec<f32>,
    pub(crate) attention: AttentionScratch,
    pub(crate) mlp: MlpScratch,
    /// Inside a feed-forward network that is not gated, `(rows, intermediate)`.
    pub(crate) inner: Vec<f32>,
    /// What attention or a feed-forward network adds to the hidden states, `(rows, hidden)`.
    pub(crate) update: Vec<f32>,
}

impl States {
    /// Reads the trees, and refuses what cannot be forwarded.
    pub(crate) fn check(
        &mut self,
        config: &ModelConfig,
        batch: &[Segment<'_, CpuCache>],
    ) -> Result<(), ForwardError> {
        if self.trees.len() < batch.len() {
            self.trees.resize_with(batch.len(), TreePaths::default);
        }
        for (segment, tree) in batch.iter().zip(&mut self.trees) {
            check_segment(segment, segment.cache.tree_from(), config.shape(), tree)?;
        }
        Ok(())
    }
}

impl Ends {
    /// The LM head.
    pub(crate) fn head(&self) -> &Linear {
        self.own_head.as_ref().unwrap_or(&self.embedding)
    }

    /// Writes the embeddings of `tokens` to `x`, `(tokens, hidden)`.
    pub(crate) fn embed<'a>(
        &self,
        config: &ModelConfig,
        tokens: impl Iterator<Item = &'a TokenId> + Clone,
        x: &mut Vec<f32>,
    ) {
        x.resize(tokens.clone().count() * config.hidden_size, 0.0);
        for (row, token) in x.chunks_exact_mut(config.hidden_size).zip(tokens) {
            self.embedding.read_row(*token as usize, row);
            if let Some(scale) = config.embedding_scale {
                for x in row {
                    *x *= scale;
                }
            }
        }
    }

    /// Gathers the scored rows, normalises them and applies the LM head. The product with `next`, if it is
    /// known, comes afterwards.
    pub(crate) fn score(
        &self,
        (config, cpu): (&ModelConfig, &Cpu),
        next: Option<&Linear>,
        batch: &[Segment<'_, CpuCache>],
        states: &mut States,
        linear: &mut LinearScratch,
        rows: &mut Rows,
    ) {
        let (hidden, vocab_size) = (config.hidden_size, config.vocab_size);
        let States {
            x, last, normed, ..
        } = states;
        last.clear();
        let mut first = 0;
        for segment in batch {
            let after = first + segment.tokens.len();
            let scored = (first + segment.scored_from).min(after);
            last.extend_from_slice(&x[scored * hidden..after * hidden]);
            first = after;
        }
        normed.resize(last.len(), 0.0);
        self.norm.forward(cpu.level, last, normed);
        rows.hidden.clear();
        if rows.want_hidden {
            rows.hidden.extend_from_slice(normed);
        }
        if let Some(scale) = config.output_scale {
            for x in &mut *normed {
                *x *= scale;
            }
        }
        rows.vocab_size = vocab_size;
        rows.logits.resize(last.len() / hidden * vocab_size, 0.0);
        self.head()
            .forward_before(next, cpu, normed, &mut rows.logits, linear);
        if let Some(divisor) = config.logit_divisor {
            for logit in &mut rows.logits {
                *logit /= divisor;
            }
        }
        if let Some(cap) = config.logit_softcap {
            let values = &mut rows.logits;
            cpu.level.run(SoftCap { cap, values });
        }
    }
}

/// Makes room in the caches for the tokens of `batch`.
pub(crate) fn reserve(batch: &mut [Segment<'_, CpuCache>]) {
    for segment in batch {
        let len = segment.cache.len() + segment.tokens.len();
        segment.cache.reserve(len);
    }
}

/// Declares the tokens of `batch` written to the caches.
pub(crate) fn written(batch: &mut [Segment<'_, CpuCache>]) {
    for segment in batch {
        let len = segment.cache.len() + segment.tokens.len();
        let has_tree = !segment.parents.is_empty();
        let tree_from = has_tree.then(|| segment.root());
        segment.cache.set_len(len, tree_from);
    }
}
