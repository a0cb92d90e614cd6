//! SmolLM3 (Hugging Face 2025): Llama, of which every fourth layer does not rotate, as others may be left out, too.

use serde_json::json;

use super::{CheckpointForm, GgufFamily, GgufWindows, ModelFamily, llama::like_llama};
use crate::config::{Architecture, ModelConfig, ModelConfigError, RawConfig, unless};

/// Layers in a row of which the last does not rotate, where the file says nothing; in GGUF files it never does.
pub(crate) const INTERVAL: usize = 4;

pub(super) static FAMILY: ModelFamily = ModelFamily {
    architecture: Architecture::SmolLm3,
    model_types: &["smollm3"],
    classes: &["SmolLM3ForCausalLM"],
    read,
    keys: &[],
    form: CheckpointForm::USUAL,
    gguf: Some(GgufFamily {
        rotary_pairs: true,
        ..GgufFamily::named("smollm3", GgufWindows::None)
    }),
};

fn read(raw: &RawConfig) -> Result<ModelConfig, ModelConfigError> {
    let raw = raw.or(json!({
        "max_position_embeddings": 32_768,
        "no_rope_layer_interval": INTERVAL,
        "num_key_value_heads": 4,
        "tie_word_embeddings": true,
    }));
    let config = like_llama(&raw, Architecture::SmolLm3)?;
    let unrotated = unrotated(&raw, config.layers)?;
    let window = if raw.flag("use_sliding_window")? {
        raw.optional("sliding_window")?
    } else {
        None
    };
    // Those that do not rotate have the window, unless the file names others.
    let windowed = raw.windowed(config.layers)?;
    let without = || {
        unrotated
            .iter()
            .map(|unrotated| *unrotated && window.is_some())
    };
    let windowed = windowed.unwrap_or_else(|| without().collect());
    Ok(ModelConfig {
        mlp_bias: raw.flag("mlp_bias")?,
        rope: Some(raw.rope(2_000_000.0)?),
        window,
        windowed,
        unrotated,
        ..config
    })
}

/// The layers of `layers` that do not rotate: those that have a 0 in the list, or else the last of every interval.
fn unrotated(raw: &RawConfig, layers: usize) -> Result<Vec<bool>, ModelConfigError> {
    if let Some(rotated) = raw.optional::<Vec<u32>>("no_rope_layers")? {
        unless(
            rotated.len() >= layers,
            "no_rope_layers",
            format!("a list of {}", rotated.len()),
            "it must have an entry for each of num_hidden_layers",
        )?;
        return Ok(rotated[..layers]
            .iter()
            .map(|rotated| *rotated == 0)
            .collect());
    }
    let key = "no_rope_layer_interval";
    let interval: usize = raw.required(key)?;
    let expected = "every so many layers one does not rotate, so it must be 1 or more";
    unless(interval > 0, key, interval, expected)?;
    Ok(every(interval, layers))
}

/// Marks the last layer of every interval among `layers` layers.
pub(crate) fn every(interval: usize, layers: usize) -> Vec<bool> {
    let last = |layer: usize| (layer + 1).is_multiple_of(interval);
    (0..layers).map(last).collect()
}
