//! Families of models: which `config.json` is whose, and how it is read.
//!
//! To add one: a file here that turns keys into a [`ModelConfig`], and a line in [`FAMILIES`].

mod decoder_only;
mod gemma2;
mod gemma3;
mod llama;
mod qwen;
pub(crate) mod t5;

use crate::config::{ConfigError, ModelConfig, RawConfig};

/// How the files of one family are told and read.
pub(crate) struct Family {
    /// Values of `model_type`.
    pub(crate) model_types: &'static [&'static str],
    /// Its language models, by the names that `architectures` gives.
    pub(crate) classes: &'static [&'static str],
    /// Turns keys into sizes and constants; they are validated afterwards.
    pub(crate) read: fn(&RawConfig) -> Result<ModelConfig, ConfigError>,
}

const FAMILIES: [Family; 7] = [
    llama::LLAMA,
    llama::MISTRAL,
    qwen::QWEN2,
    qwen::QWEN3,
    gemma2::FAMILY,
    gemma3::FAMILY,
    t5::FAMILY,
];

/// Reads a `config.json` of any family.
///
/// # Errors
/// If it is of none, or its family refuses it.
pub(crate) fn read(json: &[u8]) -> Result<ModelConfig, ConfigError> {
    let raw = RawConfig::read(json)?;
    // The other keys mean nothing before the family is known.
    let model_type: String = raw.optional("model_type")?.unwrap_or_default();
    let family = FAMILIES
        .iter()
        .find(|family| family.model_types.contains(&model_type.as_str()));
    let Some(family) = family else {
        let types = FAMILIES.iter().flat_map(|family| family.model_types);
        return Err(ConfigError::UnsupportedModel {
            found: model_type,
            supported: types.copied().collect::<Vec<_>>().join(", "),
        });
    };
    let classes: Vec<String> = raw.optional("architectures")?.unwrap_or_default();
    let other = classes
        .first()
        .filter(|class| !family.classes.contains(&class.as_str()));
    if let Some(other) = other {
        return Err(ConfigError::UnsupportedArchitecture {
            found: other.clone(),
            supported: family.classes.join(" or "),
        });
    }
    raw.check()?;
    (family.read)(&raw)
}

#[cfg(test)]
pub(crate) mod tests;
