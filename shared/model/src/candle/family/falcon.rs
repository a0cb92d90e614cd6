//! Falcon-7B (Almazrouei et al. 2023): one head of keys and values, attention and feed-forward network side by side.
//!
//! candle's model gives the last row only, so it drafts only. It computes GELU by tanh where the model's own code computes
//! it exactly: the two differ by less than 0.0005, which a target that checks every draft token makes good.

use candle_transformers::models::falcon;
use serde_json::json;

use super::constants::shared_out;
use super::{CandleFamily, Constants, candles};
use crate::candle::body::{LastRowBody, Returns};
use crate::candle::cache::Keeping;
use crate::computation::NumberFormat::F32;
use crate::config::{ModelConfigError, RawConfig, unless};

/// Positions that candle has rotations for.
const MOST_POSITIONS: usize = 5000;

pub(super) static FAMILY: CandleFamily = CandleFamily {
    name: "falcon",
    model_types: &["falcon"],
    classes: &["FalconForCausalLM"],
    read,
    load: |constants, tensors| {
        let config = candles(constants)?;
        Ok(Box::new(LastRowBody(falcon::Falcon::load(
            tensors, config,
        )?)))
    },
    returns: Returns::LastRow,
    keeping: Keeping::ANEW_ONE_BY_ONE,
    // candle rotates in the format of the weights: in 8 or 11 bits positions beyond 256 or 2048 would be rounded.
    formats: &[F32],
};

fn read(raw: &RawConfig) -> Result<Constants, ModelConfigError> {
    let raw = raw.or(json!({
        "activation": "gelu",
        "alibi": false,
        "bias": false,
        "layer_norm_epsilon": 1e-5,
        "max_position_embeddings": 2048,
        "multi_query": true,
        "new_decoder_architecture": false,
        "parallel_attn": true,
        "tie_word_embeddings": true,
    }));
    for (key, computed, expected) in [
        ("alibi", false, "engine candle rotates positions"),
        (
            "new_decoder_architecture",
            false,
            "engine candle computes that of Falcon-7B",
        ),
        (
            "multi_query",
            true,
            "engine candle computes one head of keys and values",
        ),
    ] {
        let found = raw.flag(key)?;
        unless(found == computed, key, found, expected)?;
    }
    let key = "activation";
    let activation: String = raw.required(key)?;
    unless(
        activation == "gelu",
        key,
        activation,
        "engine candle computes gelu",
    )?;

    let head_dim = shared_out(&raw)?;
    let rope = raw.rope(10_000.0)?;
    let expected = "engine candle rotates by 10000";
    unless(rope.theta == 10_000.0, "rope_theta", rope.theta, expected)?;
    let mut constants = Constants::attention(&raw, (1, head_dim), &rope)?;
    let key = "ffn_hidden_size";
    let width = 4 * constants.number("hidden_size");
    let found: usize = raw.optional(key)?.unwrap_or(width);
    unless(
        found == width,
        key,
        found,
        "engine candle takes 4 * hidden_size",
    )?;
    let key = "max_position_embeddings";
    let positions = constants.number(key);
    let expected = "engine candle rotates up to 5000 positions";
    unless(positions <= MOST_POSITIONS, key, positions, expected)?;
    constants.epsilon(&raw, "layer_norm_epsilon")?;
    for key in [
        "alibi",
        "bias",
        "multi_query",
        "new_decoder_architecture",
        "parallel_attn",
    ] {
        constants.set(key, raw.flag(key)?);
    }
    // What candle's config requires and its model does not read.
    for key in ["bos_token_id", "eos_token_id"] {
        constants.set(key, 0);
    }
    for key in ["attention_dropout", "hidden_dropout", "initializer_range"] {
        constants.set(key, 0.0);
    }
    constants.set("use_cache", true);
    Ok(constants)
}
