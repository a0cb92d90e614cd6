//! A model ready to run, of whatever kind.

use speculation::{
    TokenId,
    ports::{Caps, KvCache, KvMemory, LanguageModel, ModelShape, Rows, Segment},
};

#[cfg(feature = "device")]
use crate::device::{DeviceCache, DeviceModel};
#[cfg(feature = "llama-cpp")]
use crate::llama_cpp::{LlamaCache, LlamaModel};
use crate::{
    cache::CpuCache,
    candle::{CandleCache, CandleModel, DraftsOnly},
    config::ModelConfig,
    decoder::Decoder,
    forward_error::ForwardError,
    t5::T5,
};

/// A loaded model.
#[derive(Clone, Debug)]
pub enum Model {
    /// Decoder-only: Llama and its like.
    Decoder(Decoder),
    /// Encoder and decoder: T5.
    T5(T5),
    /// Of a family that candle-transformers computes.
    Candle(CandleModel),
    /// Decoder-only, on a GPU.
    #[cfg(feature = "device")]
    Device(DeviceModel),
    /// Whatever llama.cpp computes.
    #[cfg(feature = "llama-cpp")]
    LlamaCpp(LlamaModel),
}

/// State of one sequence of a [`Model`].
#[derive(Debug, derive_more::From, derive_more::TryInto)]
#[try_into(ref_mut)]
pub enum SequenceCache {
    /// Of a model on CPUs.
    Cpu(CpuCache),
    /// Of one of candle's.
    Candle(CandleCache),
    /// Of one on a device.
    #[cfg(feature = "device")]
    Device(DeviceCache),
    /// Of one of llama.cpp's.
    #[cfg(feature = "llama-cpp")]
    LlamaCpp(LlamaCache),
}

/// `body` with what `of` holds, of whatever kind.
macro_rules! each {
    ($of:expr, [$($kind:ident),+], $inner:ident => $body:expr) => {
        match $of {
            $(Self::$kind($inner) => $body,)+
            Self::Candle($inner) => $body,
            #[cfg(feature = "device")]
            Self::Device($inner) => $body,
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp($inner) => $body,
        }
    };
}

impl Model {
    /// The model's sizes and constants; none of one that candle or llama.cpp computes, of another family.
    pub fn config(&self) -> Option<&ModelConfig> {
        match self {
            Self::Decoder(model) => Some(model.config()),
            Self::T5(model) => Some(model.config()),
            Self::Candle(_) => None,
            #[cfg(feature = "device")]
            Self::Device(model) => Some(model.config()),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp(_) => None,
        }
    }

    /// Checks that it can be a target: that the rows of all positions of a block take one forward.
    ///
    /// # Errors
    /// If engine candle gets the last row of a forward only.
    pub fn check_target(&self) -> Result<(), DraftsOnly> {
        match self {
            Self::Candle(model) => model.config().check_target(),
            _ => Ok(()),
        }
    }

    /// Weights that are read for a token of the output; all of a model that llama.cpp computes.
    pub fn weights_per_token(&self) -> u64 {
        match self {
            Self::Candle(model) => model.weights_per_token(),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp(model) => model.context().parameters(),
            known => (known.config()).map_or(0, |config| config.weights_per_token() as u64),
        }
    }
}

impl KvCache for SequenceCache {
    fn len(&self) -> usize {
        each!(self, [Cpu], cache => cache.len())
    }

    fn truncate(&mut self, len: usize) {
        each!(self, [Cpu], cache => cache.truncate(len));
    }

    fn keep(&mut self, from: usize, path: &[u32], rest: &[u32]) {
        each!(self, [Cpu], cache => cache.keep(from, path, rest));
    }

    fn pages(&self) -> usize {
        each!(self, [Cpu], cache => cache.pages())
    }

    fn pages_for(&self, more: usize, at_once: usize) -> usize {
        each!(self, [Cpu], cache => cache.pages_for(more, at_once))
    }

    fn share(&self, len: usize) -> Option<Self> {
        each!(self, [Cpu], cache => cache.share(len).map(Self::from))
    }
}

/// The cache, if it is of that kind.
fn of_kind<'a, C>(cache: &'a mut SequenceCache) -> Result<&'a mut C, ForwardError>
where
    &'a mut C: TryFrom<&'a mut SequenceCache>,
{
    cache.try_into().map_err(|_| ForwardError::ForeignCache)
}

/// The batch with the caches of one kind.
fn all_of_kind<'a, C>(
    batch: &'a mut [Segment<'_, SequenceCache>],
) -> Result<Vec<Segment<'a, C>>, ForwardError>
where
    &'a mut C: TryFrom<&'a mut SequenceCache>,
{
    batch
        .iter_mut()
        .map(|segment| {
            Ok(Segment {
                cache: of_kind(segment.cache)?,
                tokens: segment.tokens,
                parents: segment.parents,
                scored_from: segment.scored_from,
            })
        })
        .collect()
}

impl LanguageModel for Model {
    type Cache = SequenceCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        each!(self, [Decoder, T5], model => model.shape())
    }

    fn caps(&self) -> Caps {
        each!(self, [Decoder, T5], model => model.caps())
    }

    fn new_cache(&self) -> SequenceCache {
        each!(self, [Decoder, T5], model => model.new_cache().into())
    }

    fn memory(&self) -> Option<KvMemory> {
        each!(self, [Decoder, T5], model => model.memory())
    }

    fn free_pages(&self) -> Option<usize> {
        each!(self, [Decoder, T5], model => model.free_pages())
    }

    fn reserve(&mut self, pages: usize) -> Result<(), ForwardError> {
        each!(self, [Decoder, T5], model => model.reserve(pages))
    }

    fn is_out_of_memory(error: &ForwardError) -> bool {
        matches!(error, ForwardError::OutOfMemory(_))
    }

    fn encode(
        &mut self,
        cache: &mut SequenceCache,
        source: &[TokenId],
    ) -> Result<(), ForwardError> {
        if let Self::T5(model) = self {
            return model.encode(of_kind(cache)?, source);
        }
        Ok(())
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, SequenceCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        each!(self, [Decoder, T5], model => model.forward(&mut all_of_kind(batch)?, rows))
    }
}
