//! Qwen 2 and 2.5 (Yang et al. 2024): Llama with biases on query, key and value.

use serde_json::json;

use super::{Family, decoder_only};
use crate::config::{Activation, Architecture, ConfigError, ModelConfig, RawConfig};

pub(super) const FAMILY: Family = Family {
    model_types: &["qwen2"],
    classes: &["Qwen2ForCausalLM"],
    read,
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "silu",
        "max_position_embeddings": 32_768,
        "num_key_value_heads": 32,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false,
    }));
    let config = decoder_only::read(&raw, Architecture::Qwen2)?;
    let (window, windowed) = window(&raw, config.layers)?;
    Ok(ModelConfig {
        activation: raw.activation("hidden_act", &[Activation::Silu])?,
        qkv_bias: true,
        output_bias: false,
        rope: Some(raw.rope(10_000.0)?),
        window,
        windowed,
        ..config
    })
}

/// The window, and which layers have it: none unless `use_sliding_window` is set, else those that
/// `layer_types` names, or those from `max_window_layers` on.
pub(super) fn window(
    raw: &RawConfig,
    layers: usize,
) -> Result<(Option<usize>, Vec<bool>), ConfigError> {
    let raw = raw.or(json!({"sliding_window": 4096, "max_window_layers": 28}));
    let window = if raw.flag("use_sliding_window")? {
        raw.optional("sliding_window")?
    } else {
        None
    };
    let windowed = if let Some(windowed) = raw.windowed(layers)? {
        windowed
    } else {
        let first: usize = raw.required("max_window_layers")?;
        let windowed = (0..layers).map(|layer| window.is_some() && layer >= first);
        windowed.collect()
    };
    Ok((window, windowed))
}
