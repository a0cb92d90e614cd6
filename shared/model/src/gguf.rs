//! GGUF files, the format of llama.cpp, as they are read.
//!
//! Reading makes of such a file what a Hugging Face folder is: a config, tensors under the names and in the layout they
//! have there, a `tokenizer.json`. [`gguf_writer`](crate::gguf_writer) goes the other way. Nothing else in this crate knows
//! of the format, but for the names and layouts of tensors in [`crate::decoder`].

pub(crate) mod config;
pub(crate) mod container;
pub(crate) mod part_name;
mod parts;
pub(crate) mod pre_tokenizer;
pub(crate) mod rope_factors;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tokenizer;
mod value;

use std::path::PathBuf;

use thiserror::Error;

pub(crate) use self::parts::GgufModel;
#[cfg(feature = "llama-cpp")]
pub(crate) use self::value::GgufMetadata;
use crate::config::ModelConfigError;
use crate::weights::UnreadableFile;

/// Why a GGUF file cannot be read as a checkpoint.
#[derive(Debug, Error)]
pub enum GgufError {
    /// The file cannot be opened.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// Not GGUF, or not whole.
    #[error("{} is truncated or not a GGUF file: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// One of several files that make up a model, without the others.
    #[error("{name} is one of {count} parts of a model, and {reason}")]
    Parts {
        /// The file.
        name: String,
        /// How many there are.
        count: u64,
        /// What is wrong with them.
        reason: String,
    },
    /// Metadata that every model has.
    #[error("its metadata has no {0}")]
    MissingKey(String),
    /// Metadata of another type or value than it can have.
    #[error("its metadata {key} is {found}, expected {expected}")]
    Key {
        /// Name of the value.
        key: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A model of a family that cannot be run.
    #[error("architecture {found:?} is not supported in GGUF: {supported} are")]
    Architecture {
        /// What the file says.
        found: String,
        /// Those that are supported.
        supported: String,
    },
    /// The model's constants make no sense.
    #[error("its metadata describes no model that can be run")]
    Config(#[from] ModelConfigError),
    /// Frequencies that are divided by factors that are not understood.
    #[error(
        "its tensor {0} does not hold factors of frequencies: f32 numbers, and in rope_freqs.weight those of Llama 3"
    )]
    RopeFactors(&'static str),
    /// A tokenizer of another kind.
    #[error(
        "tokenizer.ggml.model {0:?} is not supported: gpt2 (byte-level BPE) and llama (SentencePiece BPE) are"
    )]
    TokenizerModel(String),
    /// A way of cutting text into words that is not known.
    #[error("tokenizer.ggml.pre {found:?} is not supported: {supported} are")]
    PreTokenizer {
        /// What the file says.
        found: String,
        /// What could be used.
        supported: String,
    },
    /// The parts of the tokenizer contradict each other.
    #[error("its tokenizer makes no sense: {0}")]
    Tokenizer(String),
}

#[cfg(feature = "llama-cpp")]
impl GgufError {
    /// Whether the file is in order, but its tokenizer of a kind that is not read.
    pub(crate) fn is_of_the_tokenizers_kind(&self) -> bool {
        matches!(self, Self::TokenizerModel(_) | Self::PreTokenizer { .. })
    }
}
