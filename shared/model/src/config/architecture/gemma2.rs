//! Gemma 2 (Gemma Team 2024): soft caps, norms on both sides of each block, windows in every second layer.

use serde_json::json;

use super::{Family, GgufFamily, GgufWindows, decoder_only};
use crate::config::{Activation, Architecture, ConfigError, ModelConfig, RawConfig, unless};

pub(super) static FAMILY: Family = Family {
    architecture: Architecture::Gemma2,
    name: "Gemma2",
    model_types: &["gemma2"],
    classes: &["Gemma2ForCausalLM"],
    read,
    keys: &[],
    fused: false,
    gguf: Some(GgufFamily {
        architecture: "gemma2",
        rotary_pairs: false,
        windows: GgufWindows::Pattern,
    }),
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "head_dim": 256,
        "max_position_embeddings": 8192,
        "num_key_value_heads": 4,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-6,
        "sliding_window": 4096,
    }));
    let config = gemma(&raw, Architecture::Gemma2)?;
    let alternating = || (0..config.layers).map(|layer| layer % 2 == 0).collect();
    Ok(ModelConfig {
        rope: Some(raw.rope(10_000.0)?),
        windowed: raw.windowed(config.layers)?.unwrap_or_else(alternating),
        ..config
    })
}

/// Reads what Gemma 2 and 3 have in common: all but where the windows are, and how layers rotate.
pub(super) fn gemma(
    raw: &RawConfig,
    architecture: Architecture,
) -> Result<ModelConfig, ConfigError> {
    let raw = raw.or(json!({
        "hidden_activation": "gelu_pytorch_tanh",
        // Left out of files, for the library's own default is true.
        "tie_word_embeddings": true,
    }));
    let config = decoder_only::read(&raw, architecture)?;
    let scalar: f64 = raw.required("query_pre_attn_scalar")?;
    unless(
        scalar > 0.0,
        "query_pre_attn_scalar",
        scalar,
        "it must be positive",
    )?;
    Ok(ModelConfig {
        norm_plus_one: true,
        post_norms: true,
        // Files carry `hidden_act` too, which this family's code does not read.
        activation: raw.activation("hidden_activation", Activation::GeluTanh)?,
        attention_scale: (1.0 / scalar.sqrt()) as f32,
        attention_softcap: raw.optional("attn_logit_softcapping")?,
        logit_softcap: raw.optional("final_logit_softcapping")?,
        embedding_scale: Some((config.hidden_size as f64).sqrt() as f32),
        window: raw.optional("sliding_window")?,
        ..config
    })
}
