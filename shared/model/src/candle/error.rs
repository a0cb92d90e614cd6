//! Why a model cannot be computed by candle-transformers.

use thiserror::Error;

use crate::computation::ComputeDeviceError;
use crate::config::ModelConfigError;
use crate::weights::WeightsError;

/// Why a model cannot be computed by candle-transformers.
#[derive(Debug, Error)]
pub enum CandleError {
    /// Its `config.json` describes no model that candle computes as it was trained.
    #[error("the model's config is refused")]
    Config(#[from] ModelConfigError),
    /// A tensor is missing, or does not fit the config.
    #[error("the model's weights are refused")]
    Weights(#[from] WeightsError),
    /// Tensors that nothing reads.
    #[error(
        "the files have tensors that a model of this config does not: {names}; without them it would be another model"
    )]
    Unread {
        /// Their names.
        names: String,
    },
    /// There is no such device.
    #[error(transparent)]
    Place(#[from] ComputeDeviceError),
    /// candle refuses what was checked before.
    #[error("candle refuses the model: {0}")]
    Refused(String),
    /// Random weights cannot be put into a file.
    #[error("weights cannot be written: {0}")]
    Written(#[from] safetensors::SafeTensorError),
}

/// Why a model cannot be a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "engine candle computes {family} only as a drafter: candle's model gives the last row of a forward, and to verify a \
     block of drafts takes the rows of all its positions"
)]
pub struct DraftsOnly {
    /// The name of its family.
    pub family: &'static str,
}
