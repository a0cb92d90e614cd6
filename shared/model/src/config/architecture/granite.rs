//! Granite 3 (IBM 2024): Llama with constants that embeddings, scores and each block's output are multiplied by, and one
//! that logits are divided by.

use serde_json::json;

use super::{CheckpointForm, GgufFamily, GgufWindows, ModelFamily, llama::like_llama};
use crate::config::{Architecture, ModelConfig, ModelConfigError, RawConfig, unless};

pub(super) static FAMILY: ModelFamily = ModelFamily {
    architecture: Architecture::Granite,
    model_types: &["granite"],
    classes: &["GraniteForCausalLM"],
    read,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily {
        rotary_pairs: true,
        multipliers: true,
        ..GgufFamily::named("granite", GgufWindows::None)
    }),
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "attention_multiplier": 1.0,
        "embedding_multiplier": 1.0,
        "logits_scaling": 1.0,
        "max_position_embeddings": 2048,
        "residual_multiplier": 1.0,
    }));
    let other_than_one =
        |key| multiplier(&raw, key).map(|found| Some(found).filter(|it| *it != 1.0));
    Ok(ModelConfig {
        mlp_bias: raw.flag("mlp_bias")?,
        attention_scale: multiplier(&raw, "attention_multiplier")?,
        embedding_scale: other_than_one("embedding_multiplier")?,
        residual_scale: other_than_one("residual_multiplier")?,
        logit_divisor: other_than_one("logits_scaling")?,
        ..like_llama(&raw, Architecture::Granite)?
    })
}

/// The number at `key`, in single precision.
fn multiplier(raw: &RawConfig, key: &'static str) -> Result<f32, ModelConfigError> {
    let found: f64 = raw.required(key)?;
    let single = found as f32;
    let expected = "it must be positive, and neither too small nor too large for f32";
    unless(single > 0.0 && single.is_normal(), key, found, expected)?;
    Ok(single)
}
