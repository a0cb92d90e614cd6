//! Why a checkpoint cannot be written as GGUF.

use std::io;

use thiserror::Error;

use crate::{
    checkpoint::CheckpointError, config::Architecture, tokenizer::TokenizerError,
    weights::WeightsError,
};

/// Why a checkpoint cannot be written as GGUF.
#[derive(Debug, Error)]
pub enum GgufWriteError {
    /// A family without a form in GGUF.
    #[error("models of the architecture {0:?} cannot be written as GGUF")]
    Architecture(Architecture),
    /// A constant without a form in GGUF.
    #[error("the model's {what} cannot be written as GGUF: {reason}")]
    Config {
        /// The constant.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// The tokenizer cannot be read.
    #[error(transparent)]
    UnreadableTokenizer(#[from] TokenizerError),
    /// A tokenizer without a form in GGUF.
    #[error("the model's tokenizer cannot be written as GGUF: {0}")]
    Tokenizer(String),
    /// A tensor is missing or broken, or cannot be brought to the format.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The file cannot be written.
    #[error("the file cannot be written")]
    Io(#[from] io::Error),
    /// The file that was written cannot be read.
    #[error("the file that was written cannot be read")]
    Unreadable(#[source] Box<CheckpointError>),
    /// The file that was written is not the model that it was made from.
    #[error(
        "the file that was written has another {what} than the model it was made from: {difference}"
    )]
    Differs {
        /// What differs.
        what: &'static str,
        /// In what way.
        difference: String,
    },
    /// The caller stopped it.
    #[error("writing was stopped")]
    Stopped,
}
