//! One model in one format, and forwards of it.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::products::Products;
use crate::read_probe::ReadProbe;
use anyhow::{Context, bail, ensure};
use model::{Checkpoint, Computation, Decoder, Model, SequenceCache};
use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

/// What one measurement takes at least, so that neither the clock nor a single interruption counts.
const LEAST: Duration = Duration::from_millis(4);

/// Most forwards of one measurement.
const MOST: u32 = 64;

/// Runs before those that count, which find threads asleep and caches full of what was measured before: memory
/// that comes from the outermost cache takes more than one pass to settle there.
const UNCOUNTED: u32 = 3;

/// A model that holds a sequence.
pub(crate) struct DecodeSubject {
    model: Model,
    cache: SequenceCache,
    rows: Rows,
}

impl DecodeSubject {
    /// Loads the model and fills a sequence with `context` tokens; `more` must fit behind them.
    ///
    /// # Errors
    /// If the weights are refused, or the context is too long for the model.
    pub(crate) fn new(
        checkpoint: &Checkpoint,
        format: impl Into<Computation>,
        context: usize,
        more: usize,
    ) -> anyhow::Result<Self> {
        let limit = checkpoint.config().context_len.saturating_sub(more);
        ensure!(
            (1..=limit).contains(&context),
            "--context: {context} is out of range, expected 1 to {limit}"
        );
        let mut subject = Self::empty(checkpoint, format)?;
        subject.fill(context)?;
        Ok(subject)
    }

    /// Loads the model; its sequence is empty.
    ///
    /// # Errors
    /// If the weights are refused.
    pub(crate) fn empty(
        checkpoint: &Checkpoint,
        format: impl Into<Computation>,
    ) -> anyhow::Result<Self> {
        Ok(Self::of(checkpoint.load(format).context("the model")?))
    }

    /// Takes a model; its sequence is empty.
    pub(crate) fn of(model: Model) -> Self {
        Self {
            cache: model.new_cache(),
            model,
            rows: Rows::default(),
        }
    }

    /// Fills the sequence up to `context` tokens.
    ///
    /// # Errors
    /// What the model refuses.
    pub(crate) fn fill(&mut self, context: usize) -> anyhow::Result<()> {
        while self.held() < context {
            self.grow(128.min(context - self.held()))?;
        }
        Ok(())
    }

    /// Adds `count` tokens in one forward. Returns how long it took.
    ///
    /// # Errors
    /// What the model refuses.
    pub(crate) fn grow(&mut self, count: usize) -> anyhow::Result<Duration> {
        let held = self.held();
        let tokens = self.tokens(held + count);
        let started = Instant::now();
        self.forward(&tokens[held..], count)?;
        Ok(started.elapsed())
    }

    /// Forgets the sequence.
    pub(crate) fn clear(&mut self) {
        self.cache.truncate(0);
    }

    /// Tokens that the sequence holds.
    pub(crate) fn held(&self) -> usize {
        self.cache.len()
    }

    /// Bytes of the weights that a step reads.
    ///
    /// # Errors
    /// If the model is no decoder on CPUs.
    pub(crate) fn weight_bytes(&self) -> anyhow::Result<usize> {
        Ok(self.decoder()?.matrices().map(model::Linear::bytes).sum())
    }

    /// `count` tokens of no meaning.
    fn tokens(&self, count: usize) -> Vec<TokenId> {
        let vocab = self.model.shape().vocab_size;
        (0..count)
            .map(|i| ((i * i * 31 + i * 7 + 3) % vocab) as TokenId)
            .collect()
    }

    fn forward(&mut self, tokens: &[TokenId], scored_from: usize) -> anyhow::Result<()> {
        let segment = Segment {
            cache: &mut self.cache,
            tokens,
            parents: &[],
            scored_from,
        };
        Ok(self.model.forward(&mut [segment], &mut self.rows)?)
    }

    /// The mean time of `count` forwards that score `positions` positions each, after [`UNCOUNTED`].
    ///
    /// # Errors
    /// What the model refuses.
    pub(crate) fn forwards(&mut self, positions: usize, count: u32) -> anyhow::Result<Duration> {
        let tokens = self.tokens(positions);
        let held = self.cache.len();
        mean(count, || {
            self.forward(&tokens, 0)?;
            self.cache.truncate(held);
            Ok(())
        })
    }

    /// The mean time of the matrix products of `count` such forwards, and of nothing else.
    ///
    /// # Errors
    /// If the model is no decoder on CPUs.
    pub(crate) fn products(&self, products: &mut Products, count: u32) -> anyhow::Result<Duration> {
        let decoder = self.decoder()?;
        let Ok(time) = mean::<Infallible>(count, || {
            products.run(decoder);
            Ok(())
        });
        Ok(time)
    }

    /// Room for [`DecodeSubject::products`] of forwards of `positions` positions.
    ///
    /// # Errors
    /// If the model is no decoder on CPUs.
    pub(crate) fn room(&self, positions: usize) -> anyhow::Result<Products> {
        Ok(Products::new(self.decoder()?, positions))
    }

    fn decoder(&self) -> anyhow::Result<&Decoder> {
        let Model::Decoder(decoder) = &self.model else {
            bail!("only decoders on CPUs are measured");
        };
        Ok(decoder)
    }

    /// How many forwards of one position make a measurement.
    ///
    /// # Errors
    /// What the model refuses.
    pub(crate) fn enough(&mut self) -> anyhow::Result<u32> {
        let one = self.forwards(1, 3)?.max(Duration::from_nanos(1));
        let count = LEAST.as_secs_f64() / one.as_secs_f64();
        Ok((count.ceil() as u32).clamp(1, MOST))
    }
}

/// The mean time of `count` passes over the memory of `probe`, after [`UNCOUNTED`].
pub(crate) fn passes(probe: &ReadProbe, count: u32) -> Duration {
    probe.awake(|| {
        let Ok(time) = mean::<Infallible>(count, || {
            probe.pass();
            Ok(())
        });
        time
    })
}

/// The mean time of `count` times `run`, after [`UNCOUNTED`].
///
/// # Errors
/// The first of `run`.
fn mean<E>(count: u32, mut run: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    for _ in 0..UNCOUNTED {
        run()?;
    }
    let started = Instant::now();
    for _ in 0..count {
        run()?;
    }
    Ok(started.elapsed() / count)
}
