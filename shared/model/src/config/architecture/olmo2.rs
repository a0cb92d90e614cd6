//! OLMo 2 (OLMo Team 2024): Llama with norms after each block in place of those before, and norms on queries and keys,
//! each over all heads at once.

use serde_json::json;

use super::{CheckpointForm, GgufFamily, GgufWindows, ModelFamily, llama::like_llama};
use crate::config::{Architecture, ModelConfig, ModelConfigError, RawConfig};

pub(super) static FAMILY: ModelFamily = ModelFamily {
    architecture: Architecture::Olmo2,
    model_types: &["olmo2"],
    classes: &["Olmo2ForCausalLM"],
    read,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily::named("olmo2", GgufWindows::None)),
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5}));
    Ok(ModelConfig {
        pre_norms: false,
        post_norms: true,
        qk_norm: true,
        qk_norm_whole: true,
        ..like_llama(&raw, Architecture::Olmo2)?
    })
}
