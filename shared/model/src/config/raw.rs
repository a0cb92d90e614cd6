//! The file as it is written, before it is understood.

use serde::Deserialize;
use speculation::TokenId;

use super::ConfigError;

/// The keys this crate reads. Unknown keys are ignored: every release of transformers adds some.
#[derive(Debug, Deserialize)]
pub(super) struct RawConfig {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) intermediate_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) num_key_value_heads: Option<usize>,
    pub(super) head_dim: Option<usize>,
    pub(super) hidden_act: Option<String>,
    pub(super) max_position_embeddings: usize,
    pub(super) rms_norm_eps: f32,
    pub(super) rope_theta: Option<f64>,
    pub(super) rope_scaling: Option<RawRope>,
    pub(super) rope_parameters: Option<RawRope>,
    #[serde(default)]
    pub(super) tie_word_embeddings: bool,
    #[serde(default)]
    pub(super) attention_bias: bool,
    #[serde(default)]
    pub(super) mlp_bias: bool,
    pub(super) bos_token_id: Option<TokenId>,
    pub(super) eos_token_id: Option<OneOrMany>,
}

/// `rope_parameters`, or `rope_scaling` in older files.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RawRope {
    pub(super) rope_theta: Option<f64>,
    #[serde(alias = "type")]
    pub(super) rope_type: Option<String>,
    pub(super) factor: Option<f64>,
    pub(super) low_freq_factor: Option<f64>,
    pub(super) high_freq_factor: Option<f64>,
    pub(super) original_max_position_embeddings: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(TokenId),
    Many(Vec<TokenId>),
}

impl From<OneOrMany> for Vec<TokenId> {
    fn from(ids: OneOrMany) -> Self {
        match ids {
            OneOrMany::One(id) => vec![id],
            OneOrMany::Many(ids) => ids,
        }
    }
}

/// What says of which family a model is, read first: the other keys mean nothing before it.
#[derive(Deserialize)]
struct Family {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Option<Vec<String>>,
}

impl RawConfig {
    pub(super) fn read(json: &[u8]) -> Result<Self, ConfigError> {
        let family: Family = serde_json::from_slice(json)?;
        let model_type = family.model_type.unwrap_or_default();
        if model_type != "llama" {
            return Err(ConfigError::UnsupportedModel(model_type));
        }
        let architecture = family.architectures.unwrap_or_default().into_iter().next();
        if let Some(other) = architecture.filter(|name| name != "LlamaForCausalLM") {
            return Err(ConfigError::UnsupportedArchitecture(other));
        }
        // Some files carry both `type` and `rope_type`; serde takes an alias twice for an error.
        let mut value: serde_json::Value = serde_json::from_slice(json)?;
        for key in ["rope_scaling", "rope_parameters"] {
            if let Some(rope) = value.get_mut(key).and_then(|rope| rope.as_object_mut())
                && rope.contains_key("rope_type")
            {
                rope.remove("type");
            }
        }
        Ok(serde_json::from_value(value)?)
    }
}
