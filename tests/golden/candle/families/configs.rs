//! What is common to configurations, and to candle's models.

use candle_core::{Device, Result, Tensor};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use speculation::TokenId;

use super::{TEXT, VOCAB};

/// What all files have, with one to four query heads for each head of keys and values.
pub(in super::super) fn base(model_type: &str, variant: u64) -> Value {
    let kv_heads = [2, 1, 4][(variant % 3) as usize];
    json!({
        "model_type": model_type,
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 56,
        "num_hidden_layers": 2 + variant % 2,
        "num_attention_heads": 4,
        "num_key_value_heads": kv_heads,
        "head_dim": 8 + 4 * (variant % 2),
        "hidden_act": "silu",
        "max_position_embeddings": 20 * TEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0 * (1.0 + variant as f64),
        "tie_word_embeddings": false,
        "bos_token_id": 1,
        "eos_token_id": 2,
    })
}

/// The same, where the window means to candle what it means to the model.
pub(super) fn with_candles_window(config: &Value) -> Value {
    let mut config = config.clone();
    if let Some(window) = config["sliding_window"].as_u64() {
        config["sliding_window"] = json!(window - 1);
    }
    config
}

pub(in super::super) fn read<T: DeserializeOwned>(config: &Value) -> T {
    serde_json::from_value(config.clone()).unwrap()
}

pub(in super::super) fn input(tokens: &[TokenId]) -> Result<Tensor> {
    Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)
}

pub(in super::super) fn logits(rows: &Tensor) -> Result<Vec<f32>> {
    let rows = rows.flatten_all()?.to_vec1::<f32>()?;
    Ok(rows[rows.len() - VOCAB..].to_vec())
}
