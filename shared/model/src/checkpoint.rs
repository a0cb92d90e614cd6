//! A checkpoint: a folder in the Hugging Face layout, the same files in memory, or a GGUF file.

mod cached;
mod error;
mod fingerprint;
mod numerics;
mod synthetic;
mod tensors;
mod text_files;
mod tokenizer_json;
mod unread;

use std::{
    borrow::Cow,
    fmt::Write,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use candle_core::quantized::GgmlDType;
use speculation::TokenId;
use tokenizers::Tokenizer;

pub use self::error::CheckpointError;
pub(crate) use self::tensors::Matrices;
use self::text_files::chat_template;
pub(crate) use self::text_files::{TokenizerFiles, optional};
pub use self::tokenizer_json::SpecialTokens;

#[cfg(not(feature = "device"))]
use crate::computation::ComputeDeviceError;
use crate::computation::{Computation, CpuFormat};
use crate::config::ModelConfig;
use crate::decoder::Decoder;
use crate::decoder::tensors::{LayerPart, TensorNames, layouts, row_ranges, tensors};
#[cfg(feature = "device")]
use crate::device::DeviceModel;
use crate::gguf;
use crate::linear::WeightFormat;
use crate::progress::{LoadProgress, ProgressObserver};
use crate::runtime::Model;
use crate::t5::T5;
use crate::tokenizer::{self, TokenizerError};
use crate::weights::Weights;
use crate::weights::digest::WeightsDigest;

/// A model as it is stored: config, weights, and what text needs.
pub struct Checkpoint {
    config: ModelConfig,
    weights: Weights,
    pub(crate) text: TokenizerFiles,
    /// Digest of the weights, once it was asked for.
    weights_digest: OnceLock<WeightsDigest>,
    /// The folder that packed weights are kept in.
    cache: Option<PathBuf>,
}

/// The files of a checkpoint, in memory.
#[derive(Clone, Debug)]
pub struct CheckpointFiles {
    /// `config.json`.
    pub config: Cow<'static, [u8]>,
    /// `model.safetensors`.
    pub weights: Cow<'static, [u8]>,
    /// `tokenizer.json`, if there is one.
    pub tokenizer: Option<Cow<'static, [u8]>>,
    /// `tokenizer_config.json`, if there is one.
    pub tokenizer_config: Option<Cow<'static, [u8]>>,
}

impl Checkpoint {
    /// Opens the checkpoint in `folder`, or the GGUF file of that name. The tokenizer may lie in the
    /// folder itself or in `tokenizer` beside it, where a draft and a target share one.
    ///
    /// # Errors
    /// If a file is missing, or describes no model that can be run.
    pub fn open(folder: &Path) -> Result<Self, CheckpointError> {
        if folder.is_file() {
            return Self::open_gguf(folder);
        }
        let config = optional(&folder.join("config.json"))?;
        let config = config.ok_or_else(|| CheckpointError::NoConfig(folder.to_owned()))?;
        Ok(Self {
            text: TokenizerFiles::open(folder)?,
            ..Self::of(ModelConfig::from_json(&config)?, Weights::open(folder)?)
        })
    }

    /// A model without a tokenizer.
    fn of(mut config: ModelConfig, weights: Weights) -> Self {
        let names = TensorNames::of(&weights);
        // Some models have biases before attention and none after it, and one word for both in their config.
        if config.output_bias && config.encoder.is_none() {
            config.output_bias = weights.contains(&names.bias(&config, 0, LayerPart::Output));
        }
        let (fused, layouts) = (row_ranges(&config, names), layouts(&config, names));
        Self {
            weights: weights.with_row_ranges(fused).with_layouts(layouts),
            config,
            text: TokenizerFiles::default(),
            weights_digest: OnceLock::new(),
            cache: None,
        }
    }

    /// Opens a GGUF file, or the several that a model is in: their metadata is config, tokenizer and chat template.
    fn open_gguf(path: &Path) -> Result<Self, CheckpointError> {
        let file = gguf::GgufModel::open(path)?;
        let config = gguf::config::read(&file)?;
        let tokenizer = gguf::tokenizer::read(&file.metadata)?;
        let template = file.metadata.string("tokenizer.chat_template")?;
        let tensors = tensors(&config, TensorNames::TEXT);
        Ok(Self {
            text: TokenizerFiles {
                chat_template: template.map(str::to_owned),
                tokenizer: tokenizer.map(Cow::Owned),
                ..TokenizerFiles::default()
            },
            ..Self::of(config, Weights::from_gguf(file.files, tensors))
        })
    }

    /// Takes a checkpoint's files in memory.
    ///
    /// # Errors
    /// If they describe no model that can be run, or the weights are truncated.
    pub fn from_bytes(files: CheckpointFiles) -> Result<Self, CheckpointError> {
        let config = ModelConfig::from_json(&files.config)?;
        Ok(Self {
            text: TokenizerFiles {
                tokenizer: files.tokenizer,
                chat_template: chat_template(files.tokenizer_config.as_deref())?,
                ..TokenizerFiles::default()
            },
            ..Self::of(config, Weights::from_bytes(files.weights)?)
        })
    }

    /// Adds a tokenizer, the bytes of a `tokenizer.json`, to a checkpoint that has none or another.
    #[must_use]
    pub fn with_tokenizer(mut self, json: impl Into<Cow<'static, [u8]>>) -> Self {
        self.text.tokenizer = Some(json.into());
        self
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The model's own end tokens: those of `config.json`, of `generation_config.json` and of
    /// `tokenizer_config.json`, where instruct models often keep the end of a turn.
    pub fn eos_token_ids(&self) -> Vec<TokenId> {
        let mut ids = self.config.eos_token_ids.clone();
        ids.extend(
            self.text
                .more_ends
                .iter()
                .filter(|id| !self.config.eos_token_ids.contains(id)),
        );
        ids
    }

    /// The model's tensors.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The bytes of `tokenizer.json`.
    pub fn tokenizer_json(&self) -> Option<&[u8]> {
        self.text.tokenizer.as_deref()
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// If there is none, or it cannot be understood.
    pub fn tokenizer(&self) -> Result<Tokenizer, TokenizerError> {
        tokenizer::from_bytes(self.text.tokenizer()?)
    }

    /// The format that is fastest on a CPU and faithful to the file: Q8_0, which decodes a token in a quarter
    /// of the time of f32 and is all but lossless. Weights that are in Q4_K mostly are computed in it: they
    /// would gain nothing in Q8_0 but size.
    pub fn best_format(&self) -> WeightFormat {
        let formats = self.weights.matrix_formats();
        let in_q4_k = formats
            .iter()
            .filter(|format| **format == GgmlDType::Q4K.into());
        if 2 * in_q4_k.count() > formats.len() {
            WeightFormat::Q4_K
        } else {
            WeightFormat::Q8_0
        }
    }

    /// Brings the weights to where the model is computed, ready to run; a
    /// [`WeightFormat`] alone is for a CPU.
    ///
    /// # Errors
    /// If a tensor is missing, or has another shape than the config implies; or if there is no such
    /// device, or it cannot hold the model.
    pub fn load(&self, computation: impl Into<Computation>) -> Result<Model, CheckpointError> {
        unread::check(&self.config, &self.weights)?;
        let progress = &self.weights.progress;
        progress.begin(self.weights.bytes());
        let model = self.load_as(computation.into())?;
        progress.end();
        Ok(model)
    }

    /// Has `observer` watch the loading under the name `name`.
    #[must_use]
    pub fn observed(mut self, name: &str, observer: Arc<dyn ProgressObserver>) -> Self {
        self.weights.progress = Arc::new(LoadProgress::of(name, observer));
        self
    }

    /// Has the weights, as CPUs compute with them, kept in `folder`: packed by the first process that loads
    /// them, and mapped by all. What is wrong with the folder is warned of, and stops nothing.
    #[must_use]
    pub fn cached_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    fn load_as(&self, computation: Computation) -> Result<Model, CheckpointError> {
        match (computation, &self.cache) {
            (Computation::Cpu(format), None) => self.load_on_cpu(&self.weights, format),
            (Computation::Cpu(format), Some(folder)) => self.load_cached(folder, format),
            #[cfg(feature = "device")]
            (Computation::Device(place, format), _) => {
                let model = DeviceModel::load(&self.config, &self.weights, format, place)?;
                Ok(Model::Device(model))
            }
            #[cfg(not(feature = "device"))]
            (Computation::Device(place, _), _) => Err(ComputeDeviceError::NotBuilt(place).into()),
        }
    }

    /// Loads the model from its `weights`.
    fn load_on_cpu(&self, weights: &Weights, format: CpuFormat) -> Result<Model, CheckpointError> {
        let config = &self.config;
        Ok(if config.encoder.is_some() {
            Model::T5(T5::load(config, weights, format)?)
        } else {
            Model::Decoder(Decoder::load(config, weights, format)?)
        })
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
pub(crate) mod tests;
