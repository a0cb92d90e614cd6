//! A checkpoint: a folder in the Hugging Face layout, or the same files in memory.

mod random;

use std::{
    borrow::Cow,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use speculation::TokenId;
use thiserror::Error;
use tokenizers::Tokenizer;

use crate::{
    config::{ConfigError, ModelConfig},
    linear::WeightFormat,
    llama::Llama,
    tokenizer::{self, TokenizerError},
    weights::{Weights, WeightsError},
};

/// A model as it is stored: config, weights, and what text needs.
pub struct Checkpoint {
    config: ModelConfig,
    weights: Weights,
    tokenizer: Option<Cow<'static, [u8]>>,
    chat_template: Option<String>,
    generation_eos: Vec<TokenId>,
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

/// Why a checkpoint cannot be opened or loaded.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `config.json` describes no model that can be run.
    #[error("the model's config is refused")]
    Config(#[from] ConfigError),
    /// `tokenizer_config.json` makes no sense.
    #[error("tokenizer_config.json cannot be read")]
    TokenizerConfig(#[source] serde_json::Error),
    /// `generation_config.json` makes no sense.
    #[error("generation_config.json cannot be read")]
    GenerationConfig(#[source] serde_json::Error),
    /// The weights are missing, or do not fit the config.
    #[error("the model's weights are refused")]
    Weights(#[from] WeightsError),
    /// The default pair is asked for, and not there.
    #[error(
        "this build has no embedded models: name a checkpoint folder, or build with the feature \"embedded\""
    )]
    NotEmbedded,
}

impl Checkpoint {
    /// Opens the checkpoint in `folder`. Its tokenizer may lie in the folder itself or in
    /// `tokenizer` beside it, where a draft and a target share one.
    ///
    /// # Errors
    /// If a file is missing, or describes no model that can be run.
    pub fn open(folder: &Path) -> Result<Self, CheckpointError> {
        let shared = folder.with_file_name("tokenizer");
        let text =
            if !folder.join("tokenizer.json").exists() && shared.join("tokenizer.json").exists() {
                shared.as_path()
            } else {
                folder
            };
        let config = folder.join("config.json");
        let config = optional(&config)?.ok_or_else(|| CheckpointError::Io {
            path: config,
            source: io::ErrorKind::NotFound.into(),
        })?;
        let template = optional(&text.join("chat_template.jinja"))?;
        let generation = optional(&folder.join("generation_config.json"))?;
        Ok(Self {
            config: ModelConfig::from_json(&config)?,
            weights: Weights::open(folder)?,
            tokenizer: optional(&text.join("tokenizer.json"))?.map(Cow::Owned),
            chat_template: match template {
                Some(template) => Some(String::from_utf8_lossy(&template).into_owned()),
                None => optional(&text.join("tokenizer_config.json"))?
                    .map(|json| chat_template(&json))
                    .transpose()?
                    .flatten(),
            },
            generation_eos: match generation {
                Some(json) => generation_eos(&json)?,
                None => Vec::new(),
            },
        })
    }

    /// Takes a checkpoint's files in memory.
    ///
    /// # Errors
    /// If they describe no model that can be run, or the weights are truncated.
    pub fn from_bytes(files: CheckpointFiles) -> Result<Self, CheckpointError> {
        let tokenizer_config = files.tokenizer_config.as_deref();
        Ok(Self {
            config: ModelConfig::from_json(&files.config)?,
            weights: Weights::from_bytes(files.weights)?,
            tokenizer: files.tokenizer,
            chat_template: tokenizer_config.map(chat_template).transpose()?.flatten(),
            generation_eos: Vec::new(),
        })
    }

    /// A model of random weights, the same for the same `seed`: it babbles, but costs and behaves
    /// like a trained one of its size.
    ///
    /// # Errors
    /// If the config's sizes are too large to be stored.
    pub fn random(config: ModelConfig, seed: u64) -> Result<Self, CheckpointError> {
        let weights = Weights::from_bytes(random::weights(&config, seed)?)?;
        Ok(Self {
            config,
            weights,
            tokenizer: None,
            chat_template: None,
            generation_eos: Vec::new(),
        })
    }

    /// Adds a tokenizer, the bytes of a `tokenizer.json`, to a checkpoint that has none or another.
    #[must_use]
    pub fn with_tokenizer(mut self, json: impl Into<Cow<'static, [u8]>>) -> Self {
        self.tokenizer = Some(json.into());
        self
    }

    /// The model's sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The model's own end tokens: those of `config.json`, and those of `generation_config.json`,
    /// where instruct models often keep the end of a turn.
    pub fn eos_token_ids(&self) -> Vec<TokenId> {
        let mut ids = self.config.eos_token_ids.clone();
        ids.extend(
            self.generation_eos
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
        self.tokenizer.as_deref()
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// If there is none, or it cannot be understood.
    pub fn tokenizer(&self) -> Result<Tokenizer, TokenizerError> {
        tokenizer::from_bytes(self.tokenizer_json().ok_or(TokenizerError::Missing)?)
    }

    /// The chat template, in Jinja.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// Brings the weights to `format`, ready to run.
    ///
    /// # Errors
    /// If a tensor is missing, or has another shape than the config implies.
    pub fn load(&self, format: WeightFormat) -> Result<Llama, CheckpointError> {
        Ok(Llama::load(&self.config, &self.weights, format)?)
    }

    /// Fingerprint of everything that determines the bits of a logit: weights, constants, weight
    /// format and kernel family; 16 hexadecimal digits. Reads every byte of the weights.
    ///
    /// Two engines with the same fingerprint compute the same bits, whatever their CPUs.
    pub fn numerics(&self, format: WeightFormat) -> String {
        self.digest(format.kernel_family())
    }

    /// Fingerprint of the model itself, its weights and constants, whatever format it is computed in; 16
    /// hexadecimal digits. Reads every byte of the weights.
    pub fn fingerprint(&self) -> String {
        self.digest("model")
    }

    /// A digest of weights, constants and `what`.
    fn digest(&self, what: &str) -> String {
        let config = &self.config;
        let mut hash = Sha256::new();
        self.weights.digest(&mut hash);
        hash.update(format!(
            "{what} {:?} {:?} {:?} {:?}",
            (config.heads, config.kv_heads, config.head_dim),
            config.rms_norm_eps,
            config.rope_theta,
            config.rope_scaling,
        ));
        hash.finalize()[..8]
            .iter()
            .fold(String::new(), |mut hex, byte| {
                let _infallible = write!(hex, "{byte:02x}");
                hex
            })
    }
}

/// The bytes of a file, or `None` if there is no such file.
fn optional(path: &Path) -> Result<Option<Vec<u8>>, CheckpointError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CheckpointError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The end tokens of a `generation_config.json`: one, several or none.
fn generation_eos(json: &[u8]) -> Result<Vec<TokenId>, CheckpointError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Eos {
        One(TokenId),
        Several(Vec<TokenId>),
    }
    #[derive(Deserialize)]
    struct GenerationConfig {
        eos_token_id: Option<Eos>,
    }
    let config: GenerationConfig =
        serde_json::from_slice(json).map_err(CheckpointError::GenerationConfig)?;
    Ok(match config.eos_token_id {
        None => Vec::new(),
        Some(Eos::One(id)) => vec![id],
        Some(Eos::Several(ids)) => ids,
    })
}

/// The chat template of a `tokenizer_config.json`: the only one, or the one named `default`.
fn chat_template(json: &[u8]) -> Result<Option<String>, CheckpointError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Template {
        One(String),
        Named(Vec<Named>),
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
        template: String,
    }
    #[derive(Deserialize)]
    struct TokenizerConfig {
        chat_template: Option<Template>,
    }
    let config: TokenizerConfig =
        serde_json::from_slice(json).map_err(CheckpointError::TokenizerConfig)?;
    Ok(match config.chat_template {
        None => None,
        Some(Template::One(template)) => Some(template),
        Some(Template::Named(templates)) => templates
            .into_iter()
            .find(|named| named.name == "default")
            .map(|named| named.template),
    })
}

#[cfg(test)]
mod tests;
