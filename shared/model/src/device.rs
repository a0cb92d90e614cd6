//! Models on a device of candle's: NVIDIA GPUs, with the feature `cuda`; compiled with the feature `device`, which that turns on.
//!
//! The same models and the same interface as [`crate::Decoder`], with other arithmetic: weights, keys and
//! values stay on the device in bf16, f16 or f32, or weights in blocks of 8 or 4 bits. Linear layers run over the
//! rows of all segments, and attention over segments padded to one another. A row's numbers depend on its own sequence up to
//! rounding only: the libraries behind candle choose the order of their sums by the shape of the batch.
//! The promise about bits is the CPU's, and the numerics fingerprint tells the two apart.
//!
//! Nothing here names a GPU: the same code runs on candle's CPU device, which is how it is tested.

mod attention;
mod backend;
mod cache;
mod layer;
mod linear;
mod rows;

use candle_core::{DType, Device, Result, Tensor};
use speculation::ports::{Caps, KvMemory, LanguageModel, ModelShape, Rows, Segment};
use thiserror::Error;

use self::attention::{AttentionPlan, CacheRoom, MAX_SCORES, Selection};
pub(crate) use self::backend::{free_bytes, open};
use self::cache::CacheMemory;
pub use self::cache::DeviceCache;
use self::layer::{DeviceLayer, DevicePass};
use self::linear::{DeviceLinear, DeviceLoader, Norm};
use self::rows::BatchRows;
use crate::{
    candle_failure::{failure, first_line},
    computation::{ComputeDevice, ComputeDeviceError, NumberFormat},
    config::{ModelConfig, RopeConfig},
    decoder::tensors::TensorNames,
    forward_error::ForwardError,
    rope::Rotary,
    weights::{Weights, WeightsError},
};
use layer::DeviceRotation;

/// How much of the device's free memory is for keys and values: three quarters. The rest is for what forwards
/// take, and for a cache that grows, of which there are two for a moment.
const SHARE: (usize, usize) = (3, 4);

/// A decoder-only model on a device.
#[derive(Clone, Debug)]
pub struct DeviceModel {
    config: ModelConfig,
    device: Device,
    /// Of keys and values.
    dtype: DType,
    embedding: DeviceLinear,
    layers: Vec<DeviceLayer>,
    norm: Norm,
    /// `None` if the embedding table serves.
    head: Option<DeviceLinear>,
    rotary: Option<Rotary>,
    window_rotary: Option<Rotary>,
    /// What caches take; clones of the model share it.
    memory: CacheMemory,
    /// Most scores of attention computed at a time.
    max_scores: usize,
}

/// Checks that `place` can be computed on.
///
/// # Errors
/// If this build has no such backend, or the machine no such GPU.
pub fn check(place: ComputeDevice) -> std::result::Result<(), ComputeDeviceError> {
    backend::open(place).map(drop)
}

/// Why a model cannot be loaded onto a device.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// There is no such device.
    #[error(transparent)]
    Place(#[from] ComputeDeviceError),
    /// A tensor is missing or wrong.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A model of a kind that only CPUs run.
    #[error("{0} run on device cpu only")]
    Unsupported(&'static str),
    /// The device refused a tensor; most likely its memory is full.
    #[error("{tensor} cannot be put on the device: {reason}")]
    Loading {
        /// The tensor, or the first of those that are stacked.
        tensor: String,
        /// What the device said.
        reason: String,
    },
}

impl DeviceError {
    fn loading(tensor: &str, error: &candle_core::Error) -> Self {
        Self::Loading {
            tensor: tensor.to_owned(),
            reason: first_line(error),
        }
    }
}

impl DeviceModel {
    /// Reads every tensor and brings it to `place` in `format`. On [`ComputeDevice::Cpu`] it is candle that computes,
    /// not this crate's kernels. `weights` are those of a [`Checkpoint`](crate::Checkpoint), which knows in what order
    /// rows stand.
    ///
    /// # Errors
    /// If there is no such device, a tensor is missing or has another shape than `config` implies, or the
    /// device's memory does not hold it.
    pub fn load(
        config: &ModelConfig,
        weights: &Weights,
        format: NumberFormat,
        place: ComputeDevice,
    ) -> std::result::Result<Self, DeviceError> {
        if config.encoder.is_some() || !config.gated {
            return Err(DeviceError::Unsupported("encoder-decoder models"));
        }
        let device = backend::open(place)?;
        let names = TensorNames::of(weights);
        let loader = DeviceLoader {
            config,
            weights,
            names,
            device: &device,
            format,
        };
        let rotary = |rope: &RopeConfig| Rotary::new(rope, config.head_dim, config.context_len);
        Ok(Self {
            embedding: loader.table(&names.embedding())?,
            layers: (0..config.layers)
                .map(|index| DeviceLayer::load(&loader, index))
                .collect::<std::result::Result<_, _>>()?,
            norm: loader.norm_of(&names.norm(), &[config.hidden_size])?,
            head: (!config.tie_word_embeddings)
                .then(|| loader.table(&names.head()))
                .transpose()?,
            rotary: config.rope.as_ref().map(rotary),
            window_rotary: config.window_rope.as_ref().map(rotary),
            memory: CacheMemory::default(),
            max_scores: MAX_SCORES,
            config: config.clone(),
            dtype: backend::dtype(format),
            device,
        })
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn compute(
        &mut self,
        rows: &BatchRows,
        batch: &mut [Segment<'_, DeviceCache>],
        scored: &mut Rows,
    ) -> Result<()> {
        for (segment, rows) in batch.iter_mut().zip(&rows.segments) {
            segment.cache.reserve(rows.slots())?;
        }
        let device = &self.device;
        let plan = AttentionPlan::new(&self.config, rows, &rooms(batch), self.max_scores, device)?;
        let rotation = |rotary: &mut Option<Rotary>| {
            let rotary = rotary.as_mut();
            rotary
                .map(|rotary| DeviceRotation::of(rotary, &rows.positions, device))
                .transpose()
        };
        let plain = rotation(&mut self.rotary)?;
        let windowed = rotation(&mut self.window_rotary)?;

        let tokens = Tensor::from_slice(&rows.tokens, rows.tokens.len(), device)?;
        let mut x = self.embedding.rows(&tokens)?.to_dtype(DType::F32)?;
        if let Some(scale) = self.config.embedding_scale {
            x = (x * f64::from(scale))?;
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let caches: Vec<_> = batch.iter().map(|part| part.cache.layer(index)).collect();
            let rotation = if layer.window_rope { &windowed } else { &plain };
            let pass = DevicePass {
                rows,
                plan: &plan,
                rotation: rotation.as_ref().filter(|_| layer.rotated),
            };
            x = layer.forward(pass, &caches, &x)?;
        }
        self.score(&x, rows, scored)
    }

    /// Normalises the scored rows of `x`, applies the LM head, and fetches logits and hidden states.
    fn score(&self, x: &Tensor, rows: &BatchRows, scored: &mut Rows) -> Result<()> {
        scored.logits.clear();
        scored.hidden.clear();
        if rows.scored.is_empty() {
            return Ok(());
        }
        let selection = Selection::new(&rows.scored, rows.tokens.len(), &self.device)?;
        let hidden = self.norm.forward(&selection.of(x)?)?;
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        let mut logits = head.forward(&hidden)?.to_dtype(DType::F32)?;
        if let Some(divisor) = self.config.logit_divisor {
            logits = (logits / f64::from(divisor))?;
        }
        if let Some(cap) = self.config.logit_softcap {
            let cap = f64::from(cap);
            logits = ((logits / cap)?.tanh()? * cap)?;
        }
        scored.logits = logits.flatten_all()?.to_vec1()?;
        if scored.want_hidden {
            scored.hidden = hidden.flatten_all()?.to_vec1()?;
        }
        Ok(())
    }
}

/// The rooms of the segments' caches.
fn rooms(batch: &[Segment<'_, DeviceCache>]) -> Vec<CacheRoom> {
    let room = |part: &Segment<'_, DeviceCache>| CacheRoom {
        capacity: part.cache.capacity(),
        written: part.cache.written(),
    };
    batch.iter().map(room).collect()
}

impl LanguageModel for DeviceModel {
    type Cache = DeviceCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        self.config.shape()
    }

    fn caps(&self) -> Caps {
        Caps {
            bit_invariant: false,
            ..Caps::ALL
        }
    }

    fn new_cache(&self) -> DeviceCache {
        DeviceCache::new(&self.config, self.dtype, &self.device, &self.memory)
    }

    fn memory(&self) -> Option<KvMemory> {
        Some(self.memory.taken())
    }

    fn free_pages(&self) -> Option<usize> {
        let bytes = backend::free_bytes(&self.device)? / SHARE.1 * SHARE.0;
        Some(bytes / DeviceCache::page_bytes(&self.config, self.dtype).max(1))
    }

    fn is_out_of_memory(error: &ForwardError) -> bool {
        matches!(error, ForwardError::OutOfMemory(_))
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, DeviceCache>],
        rows: &mut Rows,
    ) -> std::result::Result<(), ForwardError> {
        let read = BatchRows::read(&self.config, batch)?;
        rows.vocab_size = self.config.vocab_size;
        if read.tokens.is_empty() {
            rows.logits.clear();
            rows.hidden.clear();
            return Ok(());
        }
        self.compute(&read, batch, rows)
            .map_err(|error| failure(&error))?;
        read.written(batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
