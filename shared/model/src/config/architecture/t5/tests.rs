use serde_json::{Value, json};

use super::*;
use crate::config::tests::change;

/// Returns what the file of the original small model says, and nothing that came later.
pub(crate) fn old() -> Value {
    json!({
        "architectures": ["T5WithLMHeadModel"],
        "d_ff": 2048,
        "d_kv": 64,
        "d_model": 512,
        "decoder_start_token_id": 0,
        "eos_token_id": 1,
        "initializer_factor": 1.0,
        "is_encoder_decoder": true,
        "layer_norm_epsilon": 1e-6,
        "model_type": "t5",
        "n_positions": 512,
        "num_heads": 8,
        "num_layers": 6,
        "output_past": true,
        "pad_token_id": 0,
        "relative_attention_num_buckets": 32,
        "vocab_size": 32128,
    })
}

fn read(changes: Value) -> Result<ModelConfig, ModelConfigError> {
    let mut config = old();
    change(&mut config, changes);
    ModelConfig::from_json(config.to_string().as_bytes())
}

#[test]
fn the_original_is_tied_scaled_and_not_gated() {
    let config = read(json!({})).unwrap();
    assert_eq!(config.architecture, Architecture::T5);
    assert_eq!((config.gated, config.activation), (false, Activation::Relu));
    assert!(config.tie_word_embeddings);
    assert_eq!(config.output_scale, Some(1.0 / 512_f32.sqrt()));
    assert_eq!((config.heads, config.kv_heads, config.head_dim), (8, 8, 64));
    assert_eq!((config.layers, config.intermediate_size), (6, 2048));
    assert_eq!((config.attention_scale, config.rope), (1.0, None));
    assert_eq!(config.eos_token_ids, [1]);
    let expected = EncoderConfig {
        layers: 6,
        relative_buckets: 32,
        relative_max_distance: 128,
        decoder_start_token_id: 0,
    };
    assert_eq!(config.encoder, Some(expected));
    // 512 is what it was trained on, not what it can hold.
    assert_eq!(config.context_len, 4096);
    let longer = read(json!({"n_positions": 8192})).unwrap();
    assert_eq!(longer.context_len, 8192);
}

#[test]
fn later_versions_are_gated_and_not_scaled() {
    // FLAN-T5 as it was published: no key for the scaling.
    let flan = json!({
        "architectures": ["T5ForConditionalGeneration"],
        "feed_forward_proj": "gated-gelu",
        "num_decoder_layers": 8,
        "tie_word_embeddings": false,
    });
    let config = read(flan).unwrap();
    assert!(config.gated && !config.tie_word_embeddings);
    assert_eq!(config.activation, Activation::GeluTanh);
    assert_eq!(config.output_scale, None);
    assert_eq!((config.layers, config.encoder.unwrap().layers), (8, 6));
    // Saved by a release that calls every head tied.
    let saved = json!({"tie_word_embeddings": true, "scale_decoder_outputs": false});
    assert_eq!(read(saved).unwrap().output_scale, None);
    for (name, gated, activation) in [
        ("gated-silu", true, Activation::Silu),
        ("gated-relu", true, Activation::Relu),
        ("gelu_new", false, Activation::GeluTanh),
    ] {
        let config = read(json!({"feed_forward_proj": name})).unwrap();
        let found = (config.gated, config.activation);
        assert_eq!(found, (gated, activation), "{name}");
    }
}

#[test]
fn several_end_tokens_and_another_start() {
    let config = read(json!({"eos_token_id": [1, 7], "decoder_start_token_id": 5})).unwrap();
    assert_eq!(config.eos_token_ids, [1, 7]);
    assert_eq!(config.encoder.unwrap().decoder_start_token_id, 5);
    let config = read(json!({"decoder_start_token_id": null, "pad_token_id": 3})).unwrap();
    assert_eq!(config.encoder.unwrap().decoder_start_token_id, 3);
}
