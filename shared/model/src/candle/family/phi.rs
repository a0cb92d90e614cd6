//! Phi-1, 1.5 and 2 (Li et al. 2023): attention and feed-forward network side by side behind one norm, heads that rotate in
//! part.
//!
//! candle's model gives the last row only, so it drafts only.

use candle_transformers::models::phi;
use serde_json::json;

use super::constants::shared_out;
use super::{CandleFamily, Constants, candles};
use crate::candle::body::{LastRowBody, Returns};
use crate::candle::cache::Keeping;
use crate::computation::NumberFormat::F32;
use crate::config::{Activation, ModelConfigError, RawConfig, unless};

pub(super) static FAMILY: CandleFamily = CandleFamily {
    name: "phi",
    model_types: &["phi"],
    classes: &["PhiForCausalLM"],
    read,
    load: |constants, tensors| {
        let config = candles(constants)?;
        Ok(Box::new(LastRowBody(phi::Model::new(&config, tensors)?)))
    },
    returns: Returns::LastRow,
    keeping: Keeping::ANEW_ONE_BY_ONE,
    // candle's rotations are in f32, whatever the format of the weights.
    formats: &[F32],
};

fn read(raw: &RawConfig) -> Result<Constants, ModelConfigError> {
    let raw = raw.or(json!({
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": 2048,
        "partial_rotary_factor": 0.5,
        "tie_word_embeddings": false,
    }));
    let key = "qk_layernorm";
    let expected = "engine candle norms no queries and keys of this model type";
    unless(!raw.flag(key)?, key, true, expected)?;
    let head_dim = shared_out(&raw)?;
    let heads: usize = raw.required("num_attention_heads")?;
    let kv_heads = raw.optional("num_key_value_heads")?.unwrap_or(heads);
    let rope = raw.partial_rope(10_000.0, head_dim)?;
    let dims = rope.dims.unwrap_or(head_dim);
    let key = "partial_rotary_factor";
    let holds = dims >= 2 && dims.is_multiple_of(2) && dims < head_dim;
    let expected = "an even number of a head's dimensions must rotate, and not all of them";
    unless(holds, key, dims as f64 / head_dim as f64, expected)?;

    let mut constants = Constants::attention(&raw, (kv_heads, head_dim), &rope)?;
    // candle rounds down.
    constants.set(key, (dims as f64 + 0.5) / head_dim as f64);
    constants.size(&raw, "intermediate_size")?;
    constants.epsilon(&raw, "layer_norm_eps")?;
    raw.activation("hidden_act", Activation::GeluTanh)?;
    constants.set("hidden_act", "gelu_new");
    constants.set("qk_layernorm", false);
    let key = "tie_word_embeddings";
    let expected = "engine candle reads an LM head with biases";
    unless(!constants.is_tied(), key, true, expected)?;
    Ok(constants)
}
