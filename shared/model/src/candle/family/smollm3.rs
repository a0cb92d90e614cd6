//! SmolLM3 (Bakouch et al. 2025): Llama with layers that do not rotate.

use candle_transformers::models::smol::smollm3;
use serde_json::json;

use super::constants::{no_window, shared_out};
use super::{CandleFamily, Constants, candles};
use crate::candle::body::Returns;
use crate::candle::cache::Keeping;
use crate::computation::NumberFormat::{Bf16, F16, F32};
use crate::config::{ModelConfigError, RawConfig, unless};

pub(super) static FAMILY: CandleFamily = CandleFamily {
    name: "smollm3",
    model_types: &["smollm3"],
    classes: &["SmolLM3ForCausalLM"],
    read,
    load: |constants, tensors| {
        let config = candles(constants)?;
        Ok(Box::new(smollm3::Model::new(&config, tensors)?))
    },
    returns: Returns::HiddenStates,
    keeping: Keeping::IN_PLACE,
    formats: &[F32, Bf16, F16],
};

fn read(raw: &RawConfig) -> Result<Constants, ModelConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "silu",
        "max_position_embeddings": 32_768,
        "no_rope_layer_interval": 4,
        "num_key_value_heads": 4,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": true,
    }));
    no_window(&raw)?;
    let head_dim = shared_out(&raw)?;
    let named: usize = raw.optional("head_dim")?.unwrap_or(head_dim);
    let expected = "engine candle takes hidden_size / num_attention_heads";
    unless(named == head_dim, "head_dim", named, expected)?;

    let mut constants = Constants::common(&raw, head_dim, &raw.rope(2_000_000.0)?)?;
    constants.set("mlp_bias", raw.flag("mlp_bias")?);
    let rotates = rotating_layers(&raw, constants.number("num_hidden_layers"))?;
    constants.set("no_rope_layers", rotates);
    Ok(constants)
}

/// 1 for each of `layers` layers that rotates, 0 for the others: the key that says so is named after the latter.
fn rotating_layers(raw: &RawConfig, layers: usize) -> Result<Vec<usize>, ModelConfigError> {
    let key = "no_rope_layers";
    if let Some(listed) = raw.optional::<Vec<usize>>(key)? {
        let holds = listed.len() == layers && listed.iter().all(|&rotates| rotates <= 1);
        let expected = "it must have a 0 or a 1 for each of num_hidden_layers";
        unless(holds, key, format!("{listed:?}"), expected)?;
        return Ok(listed);
    }
    let key = "no_rope_layer_interval";
    let interval: usize = raw.required(key)?;
    unless(interval > 0, key, interval, "it must be at least 1")?;
    let rotates = (1..=layers).map(|layer| usize::from(!layer.is_multiple_of(interval)));
    Ok(rotates.collect())
}
