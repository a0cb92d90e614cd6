use serde_json::{Value, json};

use super::*;
use crate::config::tests::change;
use crate::rope::{LongRope, RopeScaling};

/// The sizes of a small model, in the keys of all releases.
fn read(changes: Value) -> ModelConfig {
    let mut file = json!({
        "model_type": "phi3",
        "architectures": ["Phi3ForCausalLM"],
        "attention_bias": false,
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 32,
        "rms_norm_eps": 1e-5,
        "vocab_size": 32_064,
    });
    change(&mut file, changes);
    ModelConfig::from_json(file.to_string().as_bytes()).unwrap()
}

fn long_rope(config: &ModelConfig) -> &LongRope {
    match &config.rope.as_ref().unwrap().scaling {
        RopeScaling::LongRope(long_rope) => long_rope,
        other => panic!("{other:?}"),
    }
}

/// As Microsoft published Phi-3-mini-4k-instruct.
#[test]
fn the_short_model_rotates_as_a_llama_and_has_a_window_everywhere() {
    let config = read(json!({
        "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
        "rope_scaling": null, "rope_theta": 10_000.0, "sliding_window": 2047,
    }));
    let rope = config.rope.clone().unwrap();
    assert_eq!((rope.scaling, rope.dims), (RopeScaling::Default, None));
    assert_eq!((config.head_dim, config.context_len), (96, 4096));
    assert!((0..32).all(|layer| config.window_of(layer) == Some(2047)));
    assert!(!config.tie_word_embeddings && !config.qkv_bias);
    assert_eq!(config.eos_token_ids, [32_000]);
}

/// As Phi-3-mini-128k-instruct and Phi-4-mini-instruct have it, and as transformers 5 writes it.
#[test]
fn the_long_models_have_factors() {
    let (short, long) = (vec![1.25; 48], vec![16.5; 48]);
    let section = |kind: &str| json!({"type": kind, "short_factor": short, "long_factor": long});
    let of = |kind: &str| {
        read(json!({
            "max_position_embeddings": 131_072, "original_max_position_embeddings": 4096,
            "rope_scaling": section(kind), "sliding_window": 262_144,
        }))
    };
    let config = of("longrope");
    // sqrt(1 + ln 32 / ln 4096).
    let expected = LongRope {
        short_factors: short.clone(),
        long_factors: long.clone(),
        original_context_len: 4096,
        attention_factor: 1.190_238_1,
    };
    assert_eq!(long_rope(&config), &expected);
    assert_eq!(of("su"), config);
    let mut new = section("longrope");
    change(
        &mut new,
        json!({
            "rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 4096,
            "partial_rotary_factor": 1.0,
        }),
    );
    let new = read(json!({
        "max_position_embeddings": 131_072, "rope_parameters": new, "sliding_window": 262_144,
    }));
    assert_eq!(new, config);
    let partial = read(json!({
        "num_attention_heads": 24, "num_key_value_heads": 8, "partial_rotary_factor": 0.75,
        "max_position_embeddings": 131_072, "original_max_position_embeddings": 4096,
        "rope_scaling": section("longrope"),
    }));
    assert_eq!(partial.head_dim, 128);
    assert_eq!(partial.rope.clone().unwrap().dims, Some(96));
    assert_eq!(long_rope(&partial), &expected);
}
