//! Mistral (Jiang et al. 2023): Llama with a window in every layer.

use serde_json::json;

use super::{Family, decoder_only};
use crate::config::{Activation, Architecture, ConfigError, ModelConfig, RawConfig};

pub(super) const FAMILY: Family = Family {
    model_types: &["mistral"],
    classes: &["MistralForCausalLM"],
    read,
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "silu",
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-6,
        // Later releases have none, and say null.
        "sliding_window": 4096,
        "tie_word_embeddings": false,
    }));
    let config = decoder_only::read(&raw, Architecture::Mistral)?;
    let window: Option<usize> = raw.optional("sliding_window")?;
    Ok(ModelConfig {
        activation: raw.activation("hidden_act", &[Activation::Silu])?,
        // This family's code reads no such key.
        qkv_bias: false,
        output_bias: false,
        rope: Some(raw.rope(10_000.0)?),
        window,
        windowed: vec![window.is_some(); config.layers],
        ..config
    })
}
