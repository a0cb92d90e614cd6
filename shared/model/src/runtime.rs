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
    cache::CpuCache, config::ModelConfig, decoder::Decoder, forward_error::ForwardError, t5::T5,
};

/// A loaded model.
#[derive(Clone, Debug)]
pub enum Model {
    /// Decoder-only: Llama and its like.
    Decoder(Decoder),
    /// Encoder and decoder: T5.
    T5(T5),
    /// Decoder-only, on a GPU.
    #[cfg(feature = "device")]
    Device(DeviceModel),
    /// Whatever llama.cpp computes.
    #[cfg(feature = "llama-cpp")]
    LlamaCpp(LlamaModel),
}

/// State of one sequence of a [`Model`].
#[derive(Debug)]
pub enum SequenceCache {
    /// Of a model on CPUs.
    Cpu(CpuCache),
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
            #[cfg(feature = "device")]
            Self::Device($inner) => $body,
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp($inner) => $body,
        }
    };
}

impl Model {
    /// The model's sizes and constants; none of one that llama.cpp computes, which keeps them to itself.
    pub fn config(&self) -> Option<&ModelConfig> {
        match self {
            Self::Decoder(model) => Some(model.config()),
            Self::T5(model) => Some(model.config()),
            #[cfg(feature = "device")]
            Self::Device(model) => Some(model.config()),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp(_) => None,
        }
    }

    /// Weights that are read for a token of the output; all of a model that llama.cpp computes.
    pub fn weights_per_token(&self) -> u64 {
        match self {
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

    fn keep(&mut self, from: usize, path: &[u32]) {
        each!(self, [Cpu], cache => cache.keep(from, path));
    }

    fn pages(&self) -> usize {
        each!(self, [Cpu], cache => cache.pages())
    }

    fn pages_for(&self, more: usize, at_once: usize) -> usize {
        each!(self, [Cpu], cache => cache.pages_for(more, at_once))
    }

    fn share(&self, len: usize) -> Option<Self> {
        match self {
            Self::Cpu(cache) => cache.share(len).map(Self::Cpu),
            #[cfg(feature = "device")]
            Self::Device(cache) => cache.share(len).map(Self::Device),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp(cache) => cache.share(len).map(Self::LlamaCpp),
        }
    }
}

/// The batch with the caches of one kind.
fn of_kind<'a, C>(
    batch: &'a mut [Segment<'_, SequenceCache>],
    kind: impl Fn(&'a mut SequenceCache) -> Option<&'a mut C>,
) -> Result<Vec<Segment<'a, C>>, ForwardError> {
    batch
        .iter_mut()
        .map(|segment| {
            Ok(Segment {
                cache: kind(segment.cache).ok_or(ForwardError::ForeignCache)?,
                tokens: segment.tokens,
                parents: segment.parents,
                scored_from: segment.scored_from,
            })
        })
        .collect()
}

#[allow(
    irrefutable_let_patterns,
    clippy::unnecessary_wraps,
    reason = "there is no other kind without the features"
)]
fn on_cpu(cache: &mut SequenceCache) -> Option<&mut CpuCache> {
    let SequenceCache::Cpu(cache) = cache else {
        return None;
    };
    Some(cache)
}

#[cfg(feature = "device")]
fn on_device(cache: &mut SequenceCache) -> Option<&mut DeviceCache> {
    let SequenceCache::Device(cache) = cache else {
        return None;
    };
    Some(cache)
}

#[cfg(feature = "llama-cpp")]
fn in_llama_cpp(cache: &mut SequenceCache) -> Option<&mut LlamaCache> {
    let SequenceCache::LlamaCpp(cache) = cache else {
        return None;
    };
    Some(cache)
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
        match self {
            Self::Decoder(model) => SequenceCache::Cpu(model.new_cache()),
            Self::T5(model) => SequenceCache::Cpu(model.new_cache()),
            #[cfg(feature = "device")]
            Self::Device(model) => SequenceCache::Device(model.new_cache()),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp(model) => SequenceCache::LlamaCpp(model.new_cache()),
        }
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
            let cache = on_cpu(cache).ok_or(ForwardError::ForeignCache)?;
            return model.encode(cache, source);
        }
        Ok(())
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, SequenceCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        match self {
            Self::Decoder(model) => model.forward(&mut of_kind(batch, on_cpu)?, rows),
            Self::T5(model) => model.forward(&mut of_kind(batch, on_cpu)?, rows),
            #[cfg(feature = "device")]
            Self::Device(model) => model.forward(&mut of_kind(batch, on_device)?, rows),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp(model) => model.forward(&mut of_kind(batch, in_llama_cpp)?, rows),
        }
    }
}
