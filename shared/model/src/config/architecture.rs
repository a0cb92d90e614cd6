//! Families of models: which `config.json` is whose, and how it is read.
//!
//! To add one: its [`ModelFamily`] in a file here, beside one that it is like or in its own, a name in [`Architecture`], and
//! a line in [`FAMILIES`].

mod gemma;
mod glm4;
mod granite;
mod llama;
mod olmo2;
mod phi3;
mod qwen;
pub(crate) mod smollm3;
pub(crate) mod t5;

use crate::config::{Architecture, ModelConfig, ModelConfigError, RawConfig};

/// What is particular to one family. The rest of the crate reads a model's constants, never its family's name.
#[derive(Debug)]
pub(crate) struct ModelFamily {
    pub(crate) architecture: Architecture,
    /// Values of `model_type`.
    pub(crate) model_types: &'static [&'static str],
    /// Its language models, by the names that `architectures` gives.
    pub(crate) classes: &'static [&'static str],
    /// Turns keys into sizes and constants; they are validated afterwards.
    pub(crate) read: fn(&RawConfig) -> Result<ModelConfig, ModelConfigError>,
    /// What its files call common keys otherwise: the common name, then its own.
    pub(crate) keys: &'static [(&'static str, &'static str)],
    /// The form of its checkpoints.
    pub(crate) form: CheckpointForm,
    /// Its form in GGUF; `None` if it has none here.
    pub(crate) gguf: Option<GgufFamily>,
}

/// How the tensors of a family stand in its checkpoints.
#[derive(Debug)]
pub(crate) struct CheckpointForm {
    /// Which matrices are one.
    pub(crate) fused: FusedMatrices,
    /// Whether rows of queries and keys stand in the order in which llama.cpp rotates them.
    pub(crate) rotary_pairs: bool,
    /// Parts of a layer that are called otherwise than in most families: the name in GGUF files, then its own.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

impl CheckpointForm {
    /// The form of most families.
    const USUAL: Self = Self {
        fused: FusedMatrices::None,
        rotary_pairs: false,
        names: &[],
    };
}

/// Which matrices of a layer are one in the checkpoints of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FusedMatrices {
    /// None.
    None,
    /// Gate and up.
    GateUp,
    /// These, and query, key and value.
    All,
}

/// The form of a family in GGUF files.
#[derive(Debug)]
pub(crate) struct GgufFamily {
    /// `general.architecture`.
    pub(crate) architecture: &'static str,
    /// Whether rows of queries and keys stand in the order in which llama.cpp rotates them.
    pub(crate) rotary_pairs: bool,
    /// Whether heads may rotate in part.
    pub(crate) partial_rotary: bool,
    /// Which layers may have a window.
    pub(crate) windows: GgufWindows,
    /// Whether its metadata has what embeddings, scores and blocks are multiplied by, and what logits are divided by.
    pub(crate) multipliers: bool,
}

impl GgufFamily {
    /// A family whose rows of queries and keys stand as they do in its checkpoints.
    const fn named(architecture: &'static str, windows: GgufWindows) -> Self {
        Self {
            architecture,
            rotary_pairs: false,
            partial_rotary: false,
            windows,
            multipliers: false,
        }
    }
}

/// Which layers have a window in the GGUF files of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GgufWindows {
    /// None.
    None,
    /// All or none; a length of 0 says that there is none.
    All,
    /// Those that a list or a period names.
    Pattern,
}

/// All families. The first of those that share a GGUF architecture is the one of files without a window's length.
pub(crate) static FAMILIES: &[&ModelFamily] = &[
    &llama::LLAMA,
    &llama::MISTRAL,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &phi3::FAMILY,
    &smollm3::FAMILY,
    &granite::FAMILY,
    &olmo2::FAMILY,
    &glm4::FAMILY,
    &t5::FAMILY,
];

impl Architecture {
    /// Returns what is particular to it.
    pub(crate) fn family(self) -> &'static ModelFamily {
        let mut families = FAMILIES.iter();
        let own = families.find(|family| family.architecture == self);
        own.expect("each architecture is that of a family")
    }
}

/// Reads a `config.json` of any family.
///
/// # Errors
/// If it is of none, or its family refuses it.
pub(crate) fn read(json: &[u8]) -> Result<ModelConfig, ModelConfigError> {
    let raw = RawConfig::read(json)?;
    // The other keys mean nothing before the family is known.
    let model_type: String = raw.optional("model_type")?.unwrap_or_default();
    let mut families = FAMILIES.iter();
    let family = families.find(|family| family.model_types.contains(&model_type.as_str()));
    let Some(family) = family else {
        let types = FAMILIES.iter().flat_map(|family| family.model_types);
        return Err(ModelConfigError::UnsupportedModel {
            found: model_type,
            supported: types.copied().collect::<Vec<_>>().join(", "),
        });
    };
    let classes: Vec<String> = raw.optional("architectures")?.unwrap_or_default();
    let other = classes
        .first()
        .filter(|class| !family.classes.contains(&class.as_str()));
    if let Some(other) = other {
        return Err(ModelConfigError::UnsupportedArchitecture {
            found: other.clone(),
            supported: family.classes.join(" or "),
        });
    }
    raw.check()?;
    (family.read)(&raw)
}

#[cfg(test)]
pub(crate) mod tests;
