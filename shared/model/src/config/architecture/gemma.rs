//! Gemma 2 (Gemma Team 2024): soft caps, norms on both sides of each block, windows in every second layer; and Gemma 3
//! (Gemma Team 2025), text only: a base frequency of its own for the layers with a window, norms on queries and keys in
//! place of the soft cap on scores.

use serde_json::json;

use super::{CheckpointForm, GgufFamily, GgufWindows, ModelFamily, llama::decoder_only};
use crate::config::{Activation, Architecture, ModelConfig, ModelConfigError, RawConfig, unless};

pub(super) static GEMMA2: ModelFamily = ModelFamily {
    architecture: Architecture::Gemma2,
    model_types: &["gemma2"],
    classes: &["Gemma2ForCausalLM"],
    read: gemma2,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily::named("gemma2", GgufWindows::Pattern)),
};

pub(super) static GEMMA3: ModelFamily = ModelFamily {
    architecture: Architecture::Gemma3,
    model_types: &["gemma3_text", "gemma3"],
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    read: gemma3,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily::named("gemma3", GgufWindows::Pattern)),
};

fn gemma2(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
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
fn gemma(raw: &RawConfig, architecture: Architecture) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "hidden_activation": "gelu_pytorch_tanh",
        // Left out of files, for the library's own default is true.
        "tie_word_embeddings": true,
    }));
    let config = decoder_only(&raw, architecture)?;
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

fn gemma3(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    // Models that see pictures keep what concerns text in a section.
    let Some(text) = raw.section("text_config")? else {
        return gemma3_text(raw);
    };
    text.check()?;
    let config = gemma3_text(&text)?;
    let ends = raw.tokens("eos_token_id")?;
    Ok(ModelConfig {
        bos_token_id: raw.optional("bos_token_id")?.or(config.bos_token_id),
        eos_token_ids: if ends.is_empty() {
            config.eos_token_ids
        } else {
            ends
        },
        ..config
    })
}

fn gemma3_text(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    // That section holds only what differs from these.
    let raw = raw.or(json!({
        "bos_token_id": 2,
        "eos_token_id": 1,
        "head_dim": 256,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "max_position_embeddings": 131_072,
        "num_attention_heads": 8,
        "num_hidden_layers": 26,
        "num_key_value_heads": 4,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-6,
        "sliding_window": 4096,
        "vocab_size": 262_208,
    }));
    let config = gemma(&raw, Architecture::Gemma3)?;
    let (rope, window_rope) = raw.ropes(1_000_000.0, 10_000.0)?;
    let windowed = if let Some(windowed) = raw.windowed(config.layers)? {
        windowed
    } else {
        let pattern = pattern(&raw)?;
        let windowed = (1..=config.layers).map(|layer| !layer.is_multiple_of(pattern));
        windowed.collect()
    };
    Ok(ModelConfig {
        qk_norm: true,
        rope: Some(rope),
        window_rope: Some(window_rope),
        windowed,
        ..config
    })
}

/// Every so many layers one sees everything, in files that do not list `layer_types`.
fn pattern(raw: &RawConfig) -> Result<usize, ModelConfigError> {
    let key = "sliding_window_pattern";
    let pattern = RawConfig::either([(raw, key), (raw, "_sliding_window_pattern")])?.unwrap_or(6);
    let expected = "every so many layers one sees everything, so it must be 1 or more";
    unless(pattern > 0, key, pattern, expected)?;
    Ok(pattern)
}
