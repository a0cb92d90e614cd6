//! The model runtime: checkpoints of the Llama family, run on CPUs, and the engine thread that
//! batches many sequences through one of them.
//!
//! [`Checkpoint`] opens what a model is stored as, [`Llama`] computes it, [`engine`] serves it.
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
pub mod checkpoint;
pub mod config;
pub mod embedded;
pub mod engine;
pub mod head;
mod linear;
pub mod llama;
mod norm;
mod rope;
mod sequence;
pub mod source;
pub mod tokenizer;
pub mod weights;

pub use self::{
    cache::LlamaCache,
    checkpoint::{Checkpoint, CheckpointError, CheckpointFiles},
    config::ModelConfig,
    head::AcceptanceHead,
    linear::{UnknownWeightFormat, WeightFormat},
    llama::Llama,
    rope::RopeScaling,
    sequence::Sequence,
};
