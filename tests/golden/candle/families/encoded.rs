//! Decoders with an encoder.

use candle_transformers::models::t5;
use serde_json::json;

use super::{
    Family, TEXT, VOCAB,
    configs::{input, logits, read},
};

/// Tokens of a source.
const T5_SOURCE: usize = TEXT - 8;

/// Numbers of a T5 model's hidden state.
const T5_HIDDEN: usize = 32;

pub(super) const T5: Family = Family {
    name: "t5",
    norm_plus_one: false,
    source_len: T5_SOURCE,
    tolerance: 2e-3,
    config: |variant| {
        json!({
            "model_type": "t5",
            "vocab_size": VOCAB,
            "d_model": T5_HIDDEN,
            "d_kv": 8 + 4 * (variant % 2),
            "d_ff": 56,
            "num_layers": 2,
            "num_decoder_layers": 2 + variant % 2,
            "num_heads": 4,
            "relative_attention_num_buckets": 32 + 4 * (variant % 3),
            "relative_attention_max_distance": 30,
            "dropout_rate": 0.0,
            "initializer_factor": 1.0,
            "layer_norm_epsilon": 1e-6,
            "feed_forward_proj": (if variant % 2 == 0 { "relu" } else { "gated-gelu" }),
            "tie_word_embeddings": variant < 3,
            "is_encoder_decoder": true,
            "decoder_start_token_id": 0,
            "pad_token_id": 0,
            "eos_token_id": 1,
        })
    },
    candle: |config, weights, tokens| {
        let (source, tokens) = tokens.split_at(T5_SOURCE);
        let mut model = t5::T5ForConditionalGeneration::load(weights.builder(), &read(config))?;
        let rows = model.forward(&input(source)?, &input(tokens)?)?;
        let tied = config["tie_word_embeddings"] == true;
        let too_large = if tied { T5_HIDDEN as f64 } else { 1.0 };
        logits(&(rows / too_large)?)
    },
    faults: &[
        ("relative_attention_max_distance", "40"),
        ("layer_norm_epsilon", "0.1"),
    ],
};
