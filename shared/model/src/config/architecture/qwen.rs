//! Qwen 2 and 2.5 (Yang et al. 2024): Llama with biases on query, key and value; and Qwen 3 (Yang et al. 2025):
//! norms on each head's query and key in place of biases.

use serde_json::json;

use super::{CheckpointForm, GgufFamily, GgufWindows, ModelFamily, llama::like_llama};
use crate::config::{Architecture, ModelConfig, ModelConfigError, RawConfig};

pub(super) static QWEN2: ModelFamily = ModelFamily {
    architecture: Architecture::Qwen2,
    model_types: &["qwen2"],
    classes: &["Qwen2ForCausalLM"],
    read: qwen2,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily::named("qwen2", GgufWindows::None)),
};

pub(super) static QWEN3: ModelFamily = ModelFamily {
    architecture: Architecture::Qwen3,
    model_types: &["qwen3"],
    classes: &["Qwen3ForCausalLM"],
    read: qwen3,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily::named("qwen3", GgufWindows::None)),
};

fn qwen2(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    Ok(ModelConfig {
        qkv_bias: true,
        output_bias: false,
        ..qwen(raw, Architecture::Qwen2)?
    })
}

fn qwen3(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({"head_dim": 128}));
    Ok(ModelConfig {
        qk_norm: true,
        ..qwen(&raw, Architecture::Qwen3)?
    })
}

/// Reads what both have in common. They have no window unless `use_sliding_window` is set, else in the layers that
/// `layer_types` names, or those from `max_window_layers` on.
fn qwen(raw: &RawConfig, architecture: Architecture) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "max_position_embeddings": 32_768,
        "max_window_layers": 28,
        "num_key_value_heads": 32,
        "sliding_window": 4096,
    }));
    let config = like_llama(&raw, architecture)?;
    let window = if raw.flag("use_sliding_window")? {
        raw.optional("sliding_window")?
    } else {
        None
    };
    let windowed = if let Some(windowed) = raw.windowed(config.layers)? {
        windowed
    } else {
        let first: usize = raw.required("max_window_layers")?;
        let windowed = (0..config.layers).map(|layer| window.is_some() && layer >= first);
        windowed.collect()
    };
    Ok(ModelConfig {
        window,
        windowed,
        ..config
    })
}
