//! Why a checkpoint cannot be opened or loaded.

use std::path::PathBuf;

use thiserror::Error;

#[cfg(not(feature = "device"))]
use crate::computation::ComputeDeviceError;
use crate::config::ModelConfigError;
#[cfg(feature = "device")]
use crate::device::DeviceError;
use crate::gguf::GgufError;
use crate::weights::{UnreadableFile, WeightsError};

/// Why a checkpoint cannot be opened or loaded.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The folder is no model's.
    #[error("{} has no config.json; a model's folder holds config.json, tokenizer.json and the weights, *.safetensors", .0.display())]
    NoConfig(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// A file holds something else than its name says.
    #[error("{} cannot be used: {what}", path.display())]
    Mistaken {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Tensors that would change what the layers compute, and that no model of this config has.
    #[error(
        "its layers have tensors that a model of its config does not: {names}; without them it would be another model"
    )]
    Unread {
        /// Their names in the file.
        names: String,
    },
    /// `config.json` describes no model that can be run.
    #[error("the model's config is refused")]
    Config(#[from] ModelConfigError),
    /// `tokenizer_config.json` makes no sense.
    #[error("tokenizer_config.json cannot be read")]
    TokenizerConfig(#[source] serde_json::Error),
    /// `generation_config.json` makes no sense.
    #[error("generation_config.json cannot be read")]
    GenerationConfig(#[source] serde_json::Error),
    /// The weights are missing, or do not fit the config.
    #[error("the model's weights are refused")]
    Weights(#[from] WeightsError),
    /// A GGUF file cannot be used.
    #[error("the GGUF file is refused")]
    Gguf(#[from] GgufError),
    /// This build computes nothing on devices.
    #[cfg(not(feature = "device"))]
    #[error(transparent)]
    Place(#[from] ComputeDeviceError),
    /// The model cannot be brought to a device.
    #[cfg(feature = "device")]
    #[error("the model cannot be loaded onto the device")]
    Device(#[from] DeviceError),
    /// The default pair is asked for, and not there.
    #[error(
        "this build has no embedded models: name a checkpoint folder, or build with the feature \"embedded\""
    )]
    NotEmbedded,
}
