//! Why a model cannot be served.

use std::path::PathBuf;

use thiserror::Error;

use super::BadReference;
use crate::checkpoint::CheckpointError;
use crate::computation::{ComputeDevice, UnknownComputation};
use crate::config::ModelConfigError;
use crate::gguf::GgufError;
use crate::head::HeadError;
use crate::tokenizer::TokenizerError;

/// Why a model cannot be served.
#[derive(Debug, Error)]
pub enum SourceError {
    /// No such embedded model.
    #[error(
        "path: '{0}' is not embedded, expected embedded:target, embedded:draft or embedded:small"
    )]
    UnknownEmbedded(String),
    /// Neither here nor a name of the hub.
    #[error(
        "path: '{0}' is no folder and no file here; a model of the hub is named org/name[@revision][:file]"
    )]
    NotHere(String),
    /// Neither here nor needed whole.
    #[error(
        "path: '{0}' is not here; where another engine computes the model, name a folder with its config.json and \
         tokenizer.json, which needs no weights"
    )]
    TextNotHere(String),
    /// A folder with several GGUF files, and no other weights.
    #[error(
        "path: '{}' holds several GGUF files ({files}): name one, as in '{}'", path.display(), first.display()
    )]
    SeveralGguf {
        /// The folder.
        path: PathBuf,
        /// Their names.
        files: String,
        /// Where the first of them is.
        first: PathBuf,
    },
    /// No name of the hub.
    #[error("path: {0}")]
    Reference(#[from] BadReference),
    /// The hub does not give it.
    #[cfg(feature = "hub")]
    #[error(transparent)]
    Hub(#[from] crate::hub::HubError),
    /// A build without the hub.
    #[cfg(not(feature = "hub"))]
    #[error(
        "path: '{0}' is not here, and this build cannot ask the hub: build with the feature \"hub\""
    )]
    NoHub(String),
    /// A build without llama.cpp.
    #[cfg(not(feature = "llama-cpp"))]
    #[error(
        "engine: this program was built without llama.cpp: use engine outrider, or build with --features llama-cpp \
         (docs/llama-cpp.md)"
    )]
    NoLlamaCpp,
    /// A family that our own runtime does not have, and nobody said who computes it.
    #[error(
        "'{path}': {}; these are the families of engine outrider, and `outrider models families` lists those of others",
        causes(source)
    )]
    NoEngine {
        /// Where it is.
        path: String,
        /// The family.
        source: CheckpointError,
    },
    /// candle-transformers cannot compute it, or not so.
    #[error("engine candle, '{path}': {}", causes(source))]
    Candle {
        /// The model.
        path: String,
        /// Why candle refuses the model.
        source: Box<super::candle::CandleSourceError>,
    },
    /// llama.cpp cannot compute it, or not so.
    #[cfg(feature = "llama-cpp")]
    #[error("engine llama-cpp, '{path}': {}", causes(source))]
    LlamaCpp {
        /// The model.
        path: String,
        /// What stands in the way.
        source: super::llama_cpp::LlamaCppError,
    },
    /// The device is unknown, or the format on it.
    #[error(transparent)]
    Computation(#[from] UnknownComputation),
    /// The checkpoint cannot be opened or loaded.
    #[error("'{path}': {}", causes(source))]
    Checkpoint {
        /// Where it is.
        path: String,
        /// What is wrong with it.
        source: CheckpointError,
    },
    /// This kind of model is not computed there.
    #[error("'{path}': {kind} run on device cpu only, not on {place}")]
    Device {
        /// Where it is.
        path: String,
        /// What it is.
        kind: &'static str,
        /// The device.
        place: ComputeDevice,
    },
    /// The tokenizer is missing or broken.
    #[error("'{path}': {source}")]
    Tokenizer {
        /// Where it is.
        path: String,
        /// What is wrong with it.
        source: TokenizerError,
    },
    /// An acceptance head beside the model cannot be used with it.
    #[error("'{path}': {source}")]
    Head {
        /// Where the model is.
        path: String,
        /// What is wrong with the head.
        source: HeadError,
    },
    /// The tokenizer has ids the model does not.
    #[error("'{path}': the tokenizer has {tokens} tokens, the model only {rows}")]
    VocabularyTooLarge {
        /// Where it is.
        path: String,
        /// Ids of the tokenizer.
        tokens: usize,
        /// Rows of the embedding.
        rows: usize,
    },
}

impl SourceError {
    /// Says of an error that it is of the checkpoint at `path`.
    pub(super) fn checkpoint(path: &str) -> impl Fn(CheckpointError) -> Self {
        move |source| {
            let path = path.to_owned();
            match source {
                CheckpointError::Config(ModelConfigError::UnsupportedModel { .. })
                | CheckpointError::Gguf(GgufError::Architecture { .. }) => {
                    Self::NoEngine { path, source }
                }
                _ => Self::Checkpoint { path, source },
            }
        }
    }

    /// Says of an error that it is of the tokenizer at `path`.
    pub(super) fn tokenizer(path: &str) -> impl Fn(TokenizerError) -> Self {
        move |source| Self::Tokenizer {
            path: path.to_owned(),
            source,
        }
    }

    /// Says of an error that it is of a head at `path`.
    pub(super) fn head(path: &str) -> impl Fn(HeadError) -> Self {
        move |source| Self::Head {
            path: path.to_owned(),
            source,
        }
    }
}

/// An error with all its causes in one line, outermost first.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&cause| cause.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
