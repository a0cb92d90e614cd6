//! Mixtures of Qwen 3 (Yang et al. 2025): Qwen 3 with a router and experts in the place of the feed-forward network.

use candle_transformers::models::qwen3_moe;
use serde_json::json;

use super::constants::no_window;
use super::{CandleFamily, Constants, candles};
use crate::candle::body::Returns;
use crate::candle::cache::Keeping;
use crate::computation::NumberFormat::{Bf16, F16, F32};
use crate::config::{ModelConfigError, RawConfig, unless};

pub(super) static FAMILY: CandleFamily = CandleFamily {
    name: "qwen3_moe",
    model_types: &["qwen3_moe"],
    classes: &["Qwen3MoeForCausalLM"],
    read,
    load: |constants, tensors| {
        let config = candles(constants)?;
        Ok(Box::new(qwen3_moe::Model::new(&config, tensors)?))
    },
    returns: Returns::HiddenStates,
    keeping: Keeping::ANEW,
    formats: &[F32, Bf16, F16],
};

fn read(raw: &RawConfig) -> Result<Constants, ModelConfigError> {
    let raw = raw.or(json!({
        "decoder_sparse_step": 1,
        "hidden_act": "silu",
        "intermediate_size": 6144,
        "max_position_embeddings": 32_768,
        "moe_intermediate_size": 768,
        "norm_topk_prob": false,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_key_value_heads": 4,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false,
    }));
    no_window(&raw)?;
    let key = "mlp_only_layers";
    let dense: Vec<usize> = raw.optional(key)?.unwrap_or_default();
    let expected = "engine candle puts experts into every decoder_sparse_step-th layer";
    unless(dense.is_empty(), key, format!("{dense:?}"), expected)?;
    let key = "shared_expert_intermediate_size";
    let shared: usize = raw.optional(key)?.unwrap_or(0);
    let expected = "engine candle computes no shared experts of this model type";
    unless(shared == 0, key, shared, expected)?;

    let heads: usize = raw.required("num_attention_heads")?;
    let hidden_size: usize = raw.required("hidden_size")?;
    let head_dim = raw.optional("head_dim")?;
    let head_dim = head_dim.unwrap_or(hidden_size.checked_div(heads).unwrap_or(0));
    let mut constants = Constants::common(&raw, head_dim, &raw.rope(10_000.0)?)?;
    for key in [
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "decoder_sparse_step",
    ] {
        constants.size(&raw, key)?;
    }
    let (chosen, experts) = (
        constants.number("num_experts_per_tok"),
        constants.number("num_experts"),
    );
    let expected = "it must be at most num_experts";
    unless(chosen <= experts, "num_experts_per_tok", chosen, expected)?;
    constants.set("norm_topk_prob", raw.flag("norm_topk_prob")?);
    constants.set("use_sliding_window", false);
    constants.set("max_window_layers", 0);
    Ok(constants)
}
