//! The models that are measured, and one forward of one of them.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use model::{Checkpoint, Model, ModelConfig, SequenceCache, WeightFormat, embedded};
use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

/// Dimensions of a head of the larger model.
const HEAD_DIM: usize = 64;

/// The embedded target model, and a larger one of random weights.
pub(super) struct Subjects {
    larger: ModelConfig,
    loaded: Vec<PartSubject>,
    draft: Option<PartSubject>,
}

/// A model, and what its forwards need.
pub(super) struct PartSubject {
    pub(super) name: String,
    model: Model,
    rows: Rows,
}

impl Subjects {
    /// Loads nothing yet.
    ///
    /// # Errors
    /// If no such larger model can be.
    pub(super) fn new(hidden: usize, layers: usize) -> anyhow::Result<Self> {
        ensure!(
            hidden > 0 && hidden.is_multiple_of(HEAD_DIM) && hidden <= 8192,
            "--hidden: {hidden} is out of range, expected a multiple of {HEAD_DIM} up to 8192"
        );
        ensure!(
            (1..=128).contains(&layers),
            "--layers: {layers} is out of range, expected 1 to 128"
        );
        let heads = hidden / HEAD_DIM;
        let larger = ModelConfig {
            vocab_size: 8192,
            hidden_size: hidden,
            intermediate_size: hidden * 11 / 4,
            layers,
            heads,
            // Four query heads a key head, where they divide so.
            kv_heads: if heads.is_multiple_of(4) {
                heads / 4
            } else {
                heads
            },
            head_dim: HEAD_DIM,
            context_len: 4096,
            attention_scale: 1.0 / (HEAD_DIM as f32).sqrt(),
            ..ModelConfig::llama()
        };
        Ok(Self {
            larger,
            loaded: Vec::new(),
            draft: None,
        })
    }

    /// The models, loaded when first asked for.
    ///
    /// # Errors
    /// If one cannot be loaded.
    pub(super) fn all(&mut self) -> anyhow::Result<&mut [PartSubject]> {
        if self.loaded.is_empty() {
            outrider::progress::show("loading models")?;
            let larger = &self.larger;
            let name = format!("random, {} x {}", larger.hidden_size, larger.layers);
            let target = embedded::target().context("the embedded target model")?;
            let larger = Checkpoint::random(larger.clone(), 1).context("the larger model")?;
            self.loaded = vec![
                PartSubject::load("embedded".to_owned(), &target)?,
                PartSubject::load(name, &larger)?,
            ];
        }
        Ok(&mut self.loaded)
    }

    /// The embedded draft model, and the larger one.
    ///
    /// # Errors
    /// If one cannot be loaded.
    pub(super) fn drafts(&mut self) -> anyhow::Result<[&mut PartSubject; 2]> {
        if self.draft.is_none() {
            let draft = embedded::draft().context("the embedded draft model")?;
            self.draft = Some(PartSubject::load("embedded draft".to_owned(), &draft)?);
        }
        self.all()?;
        let [draft, larger] = [self.draft.as_mut(), self.loaded.last_mut()];
        let (draft, larger) = draft.zip(larger).context("the models are loaded")?;
        Ok([draft, larger])
    }
}

impl PartSubject {
    fn load(name: String, checkpoint: &Checkpoint) -> anyhow::Result<Self> {
        Ok(Self {
            name,
            model: checkpoint.load(WeightFormat::Q8_0)?,
            rows: Rows::default(),
        })
    }

    /// Numbers of a hidden state.
    pub(super) fn hidden_size(&self) -> usize {
        self.model.shape().hidden_size
    }

    /// `count` tokens of no meaning.
    pub(super) fn tokens(&self, count: usize) -> Vec<TokenId> {
        let vocab = self.model.shape().vocab_size;
        (0..count)
            .map(|i| ((i * i * 31 + i * 7 + 3) % vocab) as TokenId)
            .collect()
    }

    /// A cache that holds `context` tokens, with room in the context for `more`.
    ///
    /// # Errors
    /// If the model cannot hold so many.
    pub(super) fn cache(&mut self, context: usize, more: usize) -> anyhow::Result<SequenceCache> {
        let limit = self.model.shape().context_len - more;
        ensure!(
            context <= limit,
            "--contexts: {context} is out of range, expected 1 to {limit} on the model {}",
            self.name
        );
        let mut cache = self.model.new_cache();
        let tokens = self.tokens(context);
        for chunk in tokens.chunks(128) {
            self.forward(&mut cache, chunk, &[], chunk.len())?;
        }
        Ok(cache)
    }

    /// How long one forward takes.
    ///
    /// # Errors
    /// What the model refuses.
    pub(super) fn forward(
        &mut self,
        cache: &mut SequenceCache,
        tokens: &[TokenId],
        parents: &[Option<u32>],
        scored_from: usize,
    ) -> anyhow::Result<Duration> {
        let segment = Segment {
            cache,
            tokens,
            parents,
            scored_from,
        };
        let started = Instant::now();
        self.model.forward(&mut [segment], &mut self.rows)?;
        Ok(started.elapsed())
    }

    /// How long it takes to score `tokens` and to keep `path` of them; the cache is then what it was.
    ///
    /// # Errors
    /// What the model refuses.
    pub(super) fn verify(
        &mut self,
        cache: &mut SequenceCache,
        tokens: &[TokenId],
        parents: &[Option<u32>],
        path: &[u32],
    ) -> anyhow::Result<Duration> {
        let held = cache.len();
        let forward = self.forward(cache, tokens, parents, 0)?;
        let started = Instant::now();
        cache.keep(held, path, &[]);
        let took = forward + started.elapsed();
        cache.truncate(held);
        Ok(took)
    }
}
