use serde_json::{Value, json};

use super::*;

/// What the file of the original small model says, and nothing that came later.
fn old() -> Value {
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

fn read(changes: Value) -> Result<ModelConfig, ConfigError> {
    let mut config = old();
    let Value::Object(changes) = changes else {
        panic!("changes are an object, not {changes}");
    };
    for (key, value) in changes {
        config[key] = value;
    }
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
    assert_eq!(
        read(json!({"n_positions": 8192})).unwrap().context_len,
        8192
    );
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
    assert_eq!(
        (config.gated, config.activation),
        (true, Activation::GeluTanh)
    );
    assert_eq!(
        (config.output_scale, config.tie_word_embeddings),
        (None, false)
    );
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
        assert_eq!(
            (config.gated, config.activation),
            (gated, activation),
            "{name}"
        );
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

#[test]
fn each_fault_is_named() {
    for (changes, key) in [
        (json!({"feed_forward_proj": "gelu"}), "feed_forward_proj"),
        (
            json!({"feed_forward_proj": "gated-swish-2"}),
            "feed_forward_proj",
        ),
        (json!({"d_model": 0}), "d_model"),
        (json!({"d_kv": 0}), "d_kv"),
        (json!({"d_ff": 1_u64 << 40}), "d_ff"),
        (json!({"num_heads": 0}), "num_heads"),
        (json!({"num_layers": 0}), "num_layers"),
        (json!({"num_decoder_layers": 0}), "num_decoder_layers"),
        (json!({"vocab_size": 0}), "vocab_size"),
        (json!({"n_positions": 1 << 30}), "n_positions"),
        (
            json!({"relative_attention_num_buckets": 6}),
            "relative_attention_num_buckets",
        ),
        (
            json!({"relative_attention_max_distance": 16}),
            "relative_attention_max_distance",
        ),
        (json!({"layer_norm_epsilon": 0.0}), "layer_norm_epsilon"),
        (json!({"eos_token_id": 32128}), "eos_token_id"),
        (
            json!({"decoder_start_token_id": 32128}),
            "decoder_start_token_id",
        ),
    ] {
        let message = read(changes).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{key} is ")), "{message}");
    }
    let message = |changes| read(changes).unwrap_err().to_string();
    let other = message(json!({"architectures": ["T5EncoderModel"]}));
    assert!(other.contains("T5EncoderModel") && other.contains("T5ForConditionalGeneration"));
    let missing = message(json!({"d_model": null}));
    assert_eq!(missing, "config.json has no d_model");
}
