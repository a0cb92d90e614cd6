//! GLM-4-0414 and GLM-Z1 (Z.ai 2025): Llama with norms after each block too, gate and up as one matrix, and heads that
//! rotate in part, a dimension with the one beside it.
//!
//! Not the GLM-4 before them, whose `model_type` is `chatglm` or `glm`.

use serde_json::json;

use super::llama::decoder_only;
use super::{CheckpointForm, FusedMatrices, GgufFamily, GgufWindows, ModelFamily};
use crate::config::{Activation, Architecture, ModelConfig, ModelConfigError, RawConfig};

pub(super) static FAMILY: ModelFamily = ModelFamily {
    architecture: Architecture::Glm4,
    model_types: &["glm4"],
    classes: &["Glm4ForCausalLM"],
    read,
    keys: &[],
    form: CheckpointForm {
        fused: FusedMatrices::GateUp,
        rotary_pairs: true,
        names: &[
            ("post_attention_norm", "post_self_attn_layernorm"),
            ("ffn_norm", "post_attention_layernorm"),
            ("post_ffw_norm", "post_mlp_layernorm"),
        ],
    },
    gguf: Some(GgufFamily {
        rotary_pairs: true,
        partial_rotary: true,
        ..GgufFamily::named("glm4", GgufWindows::None)
    }),
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "head_dim": 128,
        "hidden_act": "silu",
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 0.5,
        "rms_norm_eps": 1.562_5e-7,
        "tie_word_embeddings": false,
    }));
    let config = decoder_only(&raw, Architecture::Glm4)?;
    Ok(ModelConfig {
        post_norms: true,
        output_bias: false,
        activation: raw.activation("hidden_act", Activation::Silu)?,
        rope: Some(raw.partial_rope(10_000.0, config.head_dim)?),
        ..config
    })
}
