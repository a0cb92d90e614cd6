//! Which model a service serves, and the model once it is loaded.

use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::embedded;
use crate::head::{self, AcceptanceHead, HeadError};
use crate::linear::WeightFormat;
use crate::llama::Llama;
use crate::tokenizer::{TokenizerError, vocabulary_fingerprint};

/// A model as a section of a service's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSource {
    /// A checkpoint folder in the Hugging Face layout, or `embedded:target`, `embedded:draft` or
    /// `embedded:small` for a model that is compiled in.
    pub path: String,
    /// Name the model is served under; empty takes the last part of the path.
    #[serde(default)]
    pub name: String,
    /// Format the weights are computed in: `q8_0` or `f32`. Where a list of models leaves it out, `q8_0`.
    #[serde(default = "default_dtype")]
    pub dtype: String,
}

fn default_dtype() -> String {
    WeightFormat::Q8_0.to_string()
}

/// A model ready to serve, and what its peers must know of it.
#[derive(Debug)]
pub struct ServedModel<M> {
    /// The model.
    pub model: M,
    /// Name it is served under.
    pub name: String,
    /// Number of token ids of its tokenizer.
    pub vocab_size: u32,
    /// SHA-256 over the tokenizer's ids and bytes.
    pub vocab_fingerprint: [u8; 32],
    /// What its numbers depend on.
    pub numerics: Numerics,
    /// Fingerprint of its weights, the same whatever format they are computed in.
    pub weights_fingerprint: String,
    /// Its acceptance heads, trained for these weights, at most one for each label.
    pub heads: Vec<AcceptanceHead>,
    /// Its own end tokens.
    pub eos_token_ids: Vec<u32>,
    /// The bytes of its `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// Its chat template, in Jinja.
    pub chat_template: Option<String>,
}

/// Two models with equal numerics give equal bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numerics {
    /// Fingerprint of weights, constants, format and kernels, in hexadecimal.
    pub weights: String,
    /// Format the weights are computed in.
    pub dtype: String,
    /// Family of kernels.
    pub kernels: String,
}

/// Why a model cannot be served.
#[derive(Debug, Error)]
pub enum SourceError {
    /// No such embedded model.
    #[error(
        "path: '{0}' is not embedded, expected embedded:target, embedded:draft or embedded:small"
    )]
    UnknownEmbedded(String),
    /// The weight format is unknown.
    #[error("dtype: {0}")]
    Dtype(#[from] crate::linear::UnknownWeightFormat),
    /// The checkpoint cannot be opened or loaded.
    #[error("'{path}': {}", causes(source))]
    Checkpoint {
        /// Where it is.
        path: String,
        /// What is wrong with it.
        source: CheckpointError,
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

/// An error with all its causes in one line, outermost first.
fn causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line = format!("{line}: {cause}");
        source = cause.source();
    }
    line
}

impl ModelSource {
    /// The embedded model in the role `target`, `draft` or `small`, in Q8_0.
    pub fn embedded(role: &str) -> Self {
        Self {
            path: format!("embedded:{role}"),
            name: String::new(),
            dtype: default_dtype(),
        }
    }

    /// Opens and loads the model and its acceptance heads: those compiled in with an embedded model, or
    /// `head-*.safetensors` beside the weights.
    ///
    /// # Errors
    /// [`SourceError`] naming the setting or the file that is wrong; a head that was trained for other
    /// weights is one.
    pub fn load(&self) -> Result<ServedModel<Llama>, SourceError> {
        let mut served = self.load_without_heads()?;
        let at = |source| SourceError::Head {
            path: self.path.clone(),
            source,
        };
        let heads = match self.path.strip_prefix("embedded:") {
            Some(role) => embedded::heads(role),
            None => head::beside(Path::new(&self.path)),
        };
        let heads = heads.map_err(at)?;
        let hidden_size = served.model.config().hidden_size;
        for head in &heads {
            head.check(hidden_size, &served.weights_fingerprint)
                .map_err(at)?;
        }
        let format: WeightFormat = self.dtype.parse()?;
        let heads = heads.into_iter().map(|head| head.in_format(format));
        served.heads = head::one_for_each_label(heads.collect()).map_err(at)?;
        Ok(served)
    }

    /// Opens and loads the model alone, as training new heads needs it: those it has may be for other
    /// weights.
    ///
    /// # Errors
    /// As [`ModelSource::load`], heads apart.
    pub fn load_without_heads(&self) -> Result<ServedModel<Llama>, SourceError> {
        let format: WeightFormat = self.dtype.parse()?;
        let checkpoint = self.open()?;
        let name = match (self.name.as_str(), self.path.strip_prefix("embedded:")) {
            ("", Some(role)) => format!("default-{role}"),
            ("", None) => {
                let last = Path::new(&self.path).file_name();
                last.map_or_else(
                    || self.path.clone(),
                    |name| name.to_string_lossy().into_owned(),
                )
            }
            (name, _) => name.to_owned(),
        };
        serve(&checkpoint, format, name, &self.path)
    }

    fn open(&self) -> Result<Checkpoint, SourceError> {
        let opened = match self.path.strip_prefix("embedded:") {
            Some("target") => embedded::target(),
            Some("draft") => embedded::draft(),
            Some("small") => embedded::small(),
            Some(_) => return Err(SourceError::UnknownEmbedded(self.path.clone())),
            None => Checkpoint::open(Path::new(&self.path)),
        };
        opened.map_err(|source| SourceError::Checkpoint {
            path: self.path.clone(),
            source,
        })
    }
}

/// Loads `checkpoint` in `format` to be served as `name`, without acceptance heads; `path` is for messages.
///
/// # Errors
/// If weights or tokenizer are missing or broken.
pub fn serve(
    checkpoint: &Checkpoint,
    format: WeightFormat,
    name: String,
    path: &str,
) -> Result<ServedModel<Llama>, SourceError> {
    let began = Instant::now();
    let at = || path.to_owned();
    let tokenizer = checkpoint
        .tokenizer()
        .map_err(|source| SourceError::Tokenizer { path: at(), source })?;
    // Ids may have gaps, so their number is not their bound.
    let tokens = tokenizer
        .get_vocab(true)
        .into_values()
        .max()
        .map_or(0, |id| id as usize + 1);
    let rows = checkpoint.config().vocab_size;
    if tokens > rows {
        return Err(SourceError::VocabularyTooLarge {
            path: at(),
            tokens,
            rows,
        });
    }
    let model = checkpoint
        .load(format)
        .map_err(|source| SourceError::Checkpoint { path: at(), source })?;
    let numerics = Numerics {
        weights: checkpoint.numerics(format),
        dtype: format.to_string(),
        kernels: format.kernel_family().to_owned(),
    };
    let load_ms = began.elapsed().as_millis() as u64;
    tracing::info!(
        model = name,
        dtype = numerics.dtype,
        load_ms,
        "model loaded"
    );
    Ok(ServedModel {
        model,
        name,
        vocab_size: tokens as u32,
        vocab_fingerprint: vocabulary_fingerprint(&tokenizer),
        numerics,
        weights_fingerprint: checkpoint.fingerprint(),
        heads: Vec::new(),
        eos_token_ids: checkpoint.eos_token_ids(),
        tokenizer_json: checkpoint.tokenizer_json().unwrap_or_default().to_vec(),
        chat_template: checkpoint.chat_template().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(source: &ModelSource) -> String {
        source.load().expect_err("refused").to_string()
    }

    #[test]
    fn wrong_settings_are_named() {
        let source = ModelSource::embedded("target");
        let other = ModelSource {
            path: "embedded:other".into(),
            ..source.clone()
        };
        assert!(message(&other).contains("embedded:other"));
        let other = ModelSource {
            dtype: "int3".into(),
            ..source.clone()
        };
        assert!(message(&other).contains("int3"));
        let other = ModelSource {
            path: "no/such/folder".into(),
            ..source
        };
        let message = message(&other);
        assert!(
            message.contains("no/such/folder") && message.contains("config.json"),
            "{message}"
        );
    }

    #[test]
    #[cfg(feature = "embedded")]
    fn the_embedded_pair_shares_one_vocabulary() {
        let target = ModelSource::embedded("target").load().expect("a target");
        let draft = ModelSource::embedded("draft").load().expect("a draft");
        assert_eq!(target.vocab_fingerprint, draft.vocab_fingerprint);
        assert_eq!(
            (target.vocab_size, target.name.as_str()),
            (4096, "default-target")
        );
        assert_ne!(target.numerics, draft.numerics);
        let labels = |heads: &[AcceptanceHead]| -> Vec<String> {
            heads
                .iter()
                .map(|head| head.info().label.to_string())
                .collect()
        };
        assert_eq!(labels(&draft.heads), ["coupled", "rejection"]);
        assert!(target.heads.is_empty());
        assert_eq!(target.eos_token_ids, [2]);
    }
}
