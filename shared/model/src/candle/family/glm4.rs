//! GLM-4-0414 and GLM-Z1 (`Glm4ForCausalLM`): norms before and after each block, heads that rotate in part.
//!
//! Not the GLM-4 before them, whose `model_type` is `chatglm` or `glm`.

use candle_transformers::models::glm4_new;
use serde_json::json;

use super::constants::no_window;
use super::{CandleFamily, Constants, candles};
use crate::candle::body::Returns;
use crate::candle::cache::Keeping;
use crate::computation::NumberFormat::F32;
use crate::config::{ModelConfigError, RawConfig, unless};

pub(super) static FAMILY: CandleFamily = CandleFamily {
    name: "glm4",
    model_types: &["glm4"],
    classes: &["Glm4ForCausalLM"],
    read,
    load: |constants, tensors| {
        let config = candles(constants)?;
        Ok(Box::new(glm4_new::Model::new(&config, tensors)?))
    },
    returns: Returns::HiddenStates,
    keeping: Keeping::IN_PLACE,
    // candle rotates in the format of the weights: in 8 or 11 bits positions beyond 256 or 2048 would be rounded.
    formats: &[F32],
};

fn read(raw: &RawConfig) -> Result<Constants, ModelConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "silu",
        "head_dim": 128,
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 0.5,
        "rms_norm_eps": 1.562_5e-7,
        "tie_word_embeddings": false,
    }));
    no_window(&raw)?;
    let key = "sliding_window";
    let window: Option<usize> = raw.optional(key)?;
    let expected = "engine candle computes no windows of this model type";
    let found = window.unwrap_or_default();
    unless(window.is_none(), key, found, expected)?;

    let head_dim: usize = raw.required("head_dim")?;
    let rope = raw.partial_rope(10_000.0, head_dim)?;
    let dims = rope.dims.unwrap_or(head_dim);
    let key = "partial_rotary_factor";
    let holds = dims >= 2 && dims.is_multiple_of(2) && dims < head_dim;
    let expected = "an even number of a head's dimensions must rotate, and not all of them";
    unless(holds, key, dims as f64 / head_dim as f64, expected)?;
    let mut constants = Constants::common(&raw, head_dim, &rope)?;
    // candle rounds down.
    constants.set(key, (dims as f64 + 0.5) / head_dim as f64);
    Ok(constants)
}
