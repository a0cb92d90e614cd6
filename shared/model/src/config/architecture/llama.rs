//! Llama 1 to 3 (Touvron et al. 2023, Dubey et al. 2024), and so Vicuna and TinyLlama; Mistral (Jiang et al. 2023), which
//! is Llama with a window in every layer; and what the files of all decoder-only models have in common with them.

use serde_json::json;

use super::{CheckpointForm, GgufFamily, GgufWindows, ModelFamily};
use crate::config::{Activation, Architecture, ModelConfig, ModelConfigError, RawConfig};

pub(super) static LLAMA: ModelFamily = ModelFamily {
    architecture: Architecture::Llama,
    model_types: &["llama"],
    classes: &["LlamaForCausalLM"],
    read: llama,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily {
        rotary_pairs: true,
        ..GgufFamily::named("llama", GgufWindows::None)
    }),
};

pub(super) static MISTRAL: ModelFamily = ModelFamily {
    architecture: Architecture::Mistral,
    model_types: &["mistral"],
    classes: &["MistralForCausalLM"],
    read: mistral,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily {
        rotary_pairs: true,
        ..GgufFamily::named("llama", GgufWindows::All)
    }),
};

fn llama(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({"max_position_embeddings": 2048}));
    Ok(ModelConfig {
        mlp_bias: raw.flag("mlp_bias")?,
        ..like_llama(&raw, Architecture::Llama)?
    })
}

fn mistral(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        // Later releases have none, and say null.
        "sliding_window": 4096,
    }));
    let config = like_llama(&raw, Architecture::Mistral)?;
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

/// Reads the keys that mean the same in every family. What only some have is left as in Llama, the
/// rotation without scaling.
pub(super) fn decoder_only(
    raw: &RawConfig,
    architecture: Architecture,
) -> Result<ModelConfig, ModelConfigError> {
    let hidden_size: usize = raw.required("hidden_size")?;
    let heads: usize = raw.required("num_attention_heads")?;
    let head_dim = match raw.optional("head_dim")? {
        Some(head_dim) => head_dim,
        None if heads == 0 || hidden_size.is_multiple_of(heads) => {
            // No heads at all are refused later.
            hidden_size.checked_div(heads).unwrap_or_default()
        }
        None => {
            let expected = "without head_dim it must divide hidden_size";
            return Err(ModelConfigError::invalid(
                "num_attention_heads",
                heads,
                expected,
            ));
        }
    };
    let bias = raw.flag("attention_bias")?;
    Ok(ModelConfig {
        architecture,
        vocab_size: raw.required("vocab_size")?,
        hidden_size,
        intermediate_size: raw.required("intermediate_size")?,
        layers: raw.required("num_hidden_layers")?,
        heads,
        kv_heads: raw.optional("num_key_value_heads")?.unwrap_or(heads),
        head_dim,
        rms_norm_eps: raw.required("rms_norm_eps")?,
        qkv_bias: bias,
        output_bias: bias,
        attention_scale: 1.0 / (head_dim as f32).sqrt(),
        context_len: raw.required("max_position_embeddings")?,
        tie_word_embeddings: raw.required("tie_word_embeddings")?,
        bos_token_id: raw.optional("bos_token_id")?,
        eos_token_ids: raw.tokens("eos_token_id")?,
        ..ModelConfig::llama()
    })
}

/// Reads the keys of families that are Llama but for what their own code adds.
pub(super) fn like_llama(
    raw: &RawConfig,
    architecture: Architecture,
) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false,
    }));
    Ok(ModelConfig {
        // The numerics fingerprint of Llama, which came first, names no activation.
        activation: raw.activation("hidden_act", Activation::Silu)?,
        rope: Some(raw.rope(10_000.0)?),
        ..decoder_only(&raw, architecture)?
    })
}
