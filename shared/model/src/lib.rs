//! The model runtime: checkpoints, run on CPUs, and the engine thread that
//! batches many sequences through one of them.
//!
//! [`Checkpoint`] opens what a model is stored as, [`Model`] computes it, [`engine`] serves it.
//! This crate knows nothing of speculation but the ports in [`speculation::ports`].
//!
//! Every kernel keeps one promise: a row's bits depend on its own sequence alone, not on the batch,
//! on how many positions are scored, on how the sequence was cut into forwards, on the number of
//! threads or on the CPU. Speculative decoding with a seed relies on it: a token verified in a block
//! must be the token that decoding one by one would have chosen.

mod activation;
mod attention;
pub mod bigram;
mod cache;
pub mod candle;
mod candle_failure;
pub mod checkpoint;
pub mod computation;
pub mod config;
mod cpu;
pub mod decoder;
#[cfg(feature = "device")]
pub mod device;
#[cfg(feature = "device")]
pub mod device_check;
pub mod embedded;
mod ends;
pub mod engine;
mod forward_error;
pub mod free_memory;
pub mod gguf;
pub mod gguf_writer;
pub mod head;
#[cfg(feature = "hub")]
pub mod hub;
mod linear;
#[cfg(feature = "llama-cpp")]
pub mod llama_cpp;
mod mistaken;
mod mlp;
mod norm;
pub mod progress;
mod python_json;
mod random;
mod reference;
mod rope;
mod runtime;
mod sequence;
pub mod source;
pub mod t5;
#[cfg(test)]
mod tests;
pub mod tokenizer;
pub mod weights;
mod weights_cache;

#[cfg(feature = "device")]
pub use self::device::DeviceModel;
#[cfg(feature = "llama-cpp")]
pub use self::llama_cpp::LlamaModel;
pub use self::{
    cache::{KvFormat, UnknownKvFormat},
    candle::CandleModel,
    checkpoint::{Checkpoint, CheckpointError, CheckpointFiles},
    computation::{Computation, ComputeDevice, CpuFormat, NumberFormat},
    config::{Activation, Architecture, ModelConfig, RopeConfig},
    cpu::{Cpu, RunningForward, Threads},
    decoder::Decoder,
    forward_error::ForwardError,
    head::AcceptanceHead,
    linear::{Linear, LinearScratch, OutputOrder, UnknownWeightFormat, WeightFormat},
    rope::RopeScaling,
    runtime::{Model, SequenceCache},
    sequence::CachedSequence,
    t5::T5,
};
