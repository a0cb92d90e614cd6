//! Models that candle-transformers computes: which folders are theirs, and what is read of them.

mod inspect;
mod serve;
mod settings;

use std::path::Path;

use thiserror::Error;

use super::families::is_own;
use super::located::Located;
use super::{EngineKind, ModelSource, SourceError};
use crate::candle::{CandleConfig, CandleError};
use crate::checkpoint::{CheckpointError, TokenizerFiles, optional};
use crate::computation::ComputeDeviceError;
use crate::weights::{Weights, WeightsError};

/// Why engine candle does not serve a model.
#[derive(Debug, Error)]
pub enum CandleSourceError {
    /// The path names something else than a folder.
    #[error(
        "it reads folders in the Hugging Face layout only, no GGUF files and none of the built-in models"
    )]
    NoFolder,
    /// A setting has a value that this engine does not know.
    #[error("{key} is {value:?}, {expected}")]
    Setting {
        /// Its name.
        key: &'static str,
        /// The setting's value.
        value: String,
        /// The values that it may have.
        expected: String,
    },
    /// The device is unknown, or is not here.
    #[error("device: {0}")]
    Place(#[from] ComputeDeviceError),
    /// A file of the folder is missing or cannot be read.
    #[error(transparent)]
    Files(#[from] CheckpointError),
    /// candle-transformers does not compute the model as it was trained, or its weights do not fit its config.
    #[error(transparent)]
    Model(#[from] CandleError),
}

impl From<WeightsError> for CandleSourceError {
    fn from(error: WeightsError) -> Self {
        Self::Model(error.into())
    }
}

/// What is read of a model's folder before its weights are.
struct OpenedFolder {
    config: CandleConfig,
    weights: Weights,
    text: TokenizerFiles,
}

impl OpenedFolder {
    fn of(located: &Located) -> Result<Self, CandleSourceError> {
        let folder = match located {
            Located::Stored(path) if !path.is_file() => path.as_path(),
            _ => return Err(CandleSourceError::NoFolder),
        };
        let config = optional(&folder.join("config.json"))?;
        let config = config.ok_or_else(|| CheckpointError::NoConfig(folder.to_owned()))?;
        Ok(Self {
            config: CandleConfig::from_json(&config).map_err(CandleError::from)?,
            weights: Weights::open(folder)?,
            text: TokenizerFiles::open(folder)?,
        })
    }
}

impl ModelSource {
    /// Returns the engine that computes the model in `located`: the one that is set; otherwise candle, if it alone knows the
    /// family, or our own runtime.
    pub(super) fn engine_for(&self, located: &Located) -> EngineKind {
        match (self.engine, located) {
            (EngineKind::Auto, Located::Stored(path)) if is_for_candle(path) => EngineKind::Candle,
            (EngineKind::Auto, _) => EngineKind::Outrider,
            (set, _) => set,
        }
    }

    /// Says of which model engine candle or its settings stand in the way.
    fn refused_by_candle(&self, error: CandleSourceError) -> SourceError {
        SourceError::Candle {
            path: self.path.clone(),
            source: Box::new(error),
        }
    }
}

/// Returns whether `path` is the folder of a model that candle alone knows. A folder whose config cannot be read is none;
/// whoever opens it says why.
fn is_for_candle(path: &Path) -> bool {
    if path.is_file() {
        return false;
    }
    let config = optional(&path.join("config.json")).ok().flatten();
    let known = config.and_then(|json| CandleConfig::known_type(&json));
    known.is_some_and(|model_type| !is_own(&model_type))
}
