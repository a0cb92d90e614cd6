//! Llama 1 to 3 (Touvron et al. 2023, Dubey et al. 2024), and so Vicuna and TinyLlama.

use serde_json::json;

use super::{Family, decoder_only};
use crate::config::{Activation, Architecture, ConfigError, ModelConfig, RawConfig};

pub(super) const FAMILY: Family = Family {
    model_types: &["llama"],
    classes: &["LlamaForCausalLM"],
    read,
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false,
    }));
    Ok(ModelConfig {
        // The numerics fingerprint of this family, which came first, names no activation.
        activation: raw.activation("hidden_act", &[Activation::Silu])?,
        mlp_bias: raw.flag("mlp_bias")?,
        rope: Some(raw.rope(10_000.0)?),
        ..decoder_only::read(&raw, Architecture::Llama)?
    })
}
