//! Small configurations of the families that engine candle computes.

/// The `model_type`s of those that may be targets.
pub const FAMILIES: [&str; 3] = ["qwen3_moe", "glm4", "smollm3"];

/// The `model_type`s of those that draft only.
pub const DRAFTERS: [&str; 2] = ["phi", "falcon"];

/// The `config.json` of a small model of the family `model_type`.
///
/// # Panics
/// If it is none of [`FAMILIES`] and [`DRAFTERS`].
pub fn config(model_type: &str, vocab_size: usize) -> String {
    let own = match model_type {
        // Every second layer is dense.
        "qwen3_moe" => {
            r#""head_dim": 16, "moe_intermediate_size": 24, "num_experts": 6, "num_experts_per_tok": 2,
               "norm_topk_prob": true, "decoder_sparse_step": 2"#
        }
        "glm4" => r#""head_dim": 16, "partial_rotary_factor": 0.5, "attention_bias": true"#,
        "smollm3" => r#""no_rope_layer_interval": 2, "tie_word_embeddings": true"#,
        "phi" => r#""layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5"#,
        "falcon" => r#""layer_norm_epsilon": 1e-5, "num_kv_heads": 4"#,
        other => panic!("{other} is none of engine candle's"),
    };
    format!(
        r#"{{"model_type": "{model_type}", "vocab_size": {vocab_size}, "hidden_size": 64, "intermediate_size": 96,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 640, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "bos_token_id": 1,
            "eos_token_id": 2, {own}}}"#
    )
}

/// The `config.json` of a mixture of 60 million parameters, 8 experts of which 2 compute a token.
pub fn mixture_of_60_million(vocab_size: usize) -> String {
    format!(
        r#"{{"model_type": "qwen3_moe", "vocab_size": {vocab_size}, "hidden_size": 512, "num_hidden_layers": 8,
            "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "moe_intermediate_size": 512,
            "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true, "max_position_embeddings": 640,
            "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2}}"#
    )
}
