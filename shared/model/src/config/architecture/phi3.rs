//! Phi-3, 3.5 and 4 (Abdin et al. 2024): Llama with fused matrices, a window in every layer or none, LongRoPE, and
//! heads that may rotate in part.

use serde_json::json;

use super::llama::decoder_only;
use super::{CheckpointForm, FusedMatrices, GgufFamily, GgufWindows, ModelFamily};
use crate::config::{Activation, Architecture, ModelConfig, ModelConfigError, RawConfig};

pub(super) static FAMILY: ModelFamily = ModelFamily {
    architecture: Architecture::Phi3,
    model_types: &["phi3"],
    classes: &["Phi3ForCausalLM"],
    read,
    keys: &[],
    form: CheckpointForm {
        fused: FusedMatrices::All,
        ..CheckpointForm::USUAL
    },
    gguf: Some(GgufFamily {
        partial_rotary: true,
        ..GgufFamily::named("phi3", GgufWindows::All)
    }),
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "bos_token_id": 1,
        "eos_token_id": 32_000,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "sliding_window": null,
        "tie_word_embeddings": false,
    }));
    let config = decoder_only(&raw, Architecture::Phi3)?;
    let window: Option<usize> = raw.optional("sliding_window")?;
    Ok(ModelConfig {
        // This family's code reads no such key.
        qkv_bias: false,
        output_bias: false,
        activation: raw.activation("hidden_act", Activation::Silu)?,
        rope: Some(raw.partial_rope(10_000.0, config.head_dim)?),
        window,
        windowed: vec![window.is_some(); config.layers],
        ..config
    })
}

#[cfg(test)]
mod tests;
