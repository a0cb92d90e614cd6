//! Llama 1 to 3 (Touvron et al. 2023, Dubey et al. 2024), and so Vicuna and TinyLlama; and Mistral (Jiang et al.
//! 2023), which is Llama with a window in every layer.

use serde_json::json;

use super::{Family, GgufFamily, GgufWindows, decoder_only};
use crate::config::{Architecture, ConfigError, ModelConfig, RawConfig};

pub(super) static LLAMA: Family = Family {
    architecture: Architecture::Llama,
    name: "Llama",
    model_types: &["llama"],
    classes: &["LlamaForCausalLM"],
    read: llama,
    keys: &[],
    fused: false,
    gguf: Some(GgufFamily {
        architecture: "llama",
        rotary_pairs: true,
        windows: GgufWindows::None,
    }),
};

pub(super) static MISTRAL: Family = Family {
    architecture: Architecture::Mistral,
    name: "Mistral",
    model_types: &["mistral"],
    classes: &["MistralForCausalLM"],
    read: mistral,
    keys: &[],
    fused: false,
    gguf: Some(GgufFamily {
        architecture: "llama",
        rotary_pairs: true,
        windows: GgufWindows::All,
    }),
};

fn llama(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({"max_position_embeddings": 2048}));
    Ok(ModelConfig {
        mlp_bias: raw.flag("mlp_bias")?,
        ..decoder_only::like_llama(&raw, Architecture::Llama)?
    })
}

fn mistral(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        // Later releases have none, and say null.
        "sliding_window": 4096,
    }));
    let config = decoder_only::like_llama(&raw, Architecture::Mistral)?;
    let window: Option<usize> = raw.optional("sliding_window")?;
    Ok(ModelConfig {
        // This family's code reads no such key.
        qkv_bias: false,
        output_bias: false,
        window,
        windowed: vec![window.is_some(); config.layers],
        ..config
    })
}
