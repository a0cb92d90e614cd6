//! Qwen 3 (Yang et al. 2025): norms on each head's query and key in place of biases.

use serde_json::json;

use super::{Family, decoder_only, qwen2};
use crate::config::{Activation, Architecture, ConfigError, ModelConfig, RawConfig};

pub(super) const FAMILY: Family = Family {
    model_types: &["qwen3"],
    classes: &["Qwen3ForCausalLM"],
    read,
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "head_dim": 128,
        "hidden_act": "silu",
        "max_position_embeddings": 32_768,
        "num_key_value_heads": 32,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false,
    }));
    let config = decoder_only::read(&raw, Architecture::Qwen3)?;
    let (window, windowed) = qwen2::window(&raw, config.layers)?;
    Ok(ModelConfig {
        activation: raw.activation("hidden_act", &[Activation::Silu])?,
        qk_norm: true,
        rope: Some(raw.rope(10_000.0)?),
        window,
        windowed,
        ..config
    })
}
