use serde_json::{Value, json};

use super::*;

fn base() -> Value {
    json!({
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 100,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    })
}

fn read(changes: Value) -> Result<ModelConfig, ConfigError> {
    let Value::Object(changes) = changes else {
        panic!("changes are an object, not {changes}");
    };
    let mut config = base();
    for (key, value) in changes {
        config[key] = value;
    }
    ModelConfig::from_json(config.to_string().as_bytes())
}

fn message(changes: Value) -> String {
    read(changes).unwrap_err().to_string()
}

fn llama3() -> Value {
    json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    })
}

#[test]
fn optional_keys_have_defaults() {
    let config = read(json!({})).unwrap();
    assert_eq!((config.kv_heads, config.head_dim), (4, 16));
    assert_eq!(config.rope.unwrap().theta, 10_000.0);
    assert_eq!(config.rope.unwrap().scaling, RopeScaling::Default);
    assert!(!config.tie_word_embeddings);
    assert!(config.eos_token_ids.is_empty());
}

#[test]
fn old_and_new_rope_keys_mean_the_same() {
    let mut new = llama3();
    new["rope_theta"] = json!(500_000.0);
    let new = read(json!({"rope_parameters": new})).unwrap();
    let old = read(json!({"rope_theta": 500_000.0, "rope_scaling": llama3()})).unwrap();
    let mut older = llama3();
    older["type"] = older["rope_type"].clone();
    let both = read(json!({"rope_theta": 500_000.0, "rope_scaling": older.clone()})).unwrap();
    older.as_object_mut().unwrap().remove("rope_type");
    let older = read(json!({"rope_theta": 500_000.0, "rope_scaling": older})).unwrap();
    assert_eq!(new, old);
    assert_eq!(new, both);
    assert_eq!(new, older);
    assert!(matches!(
        new.rope.unwrap().scaling,
        RopeScaling::Llama3 { factor: 8.0, .. }
    ));
}

#[test]
fn a_token_reads_every_matrix_once() {
    // Four of 64 by 64, three of 64 by 128 in each of two layers, and the LM head.
    let expected = 2 * (4 * 64 * 64 + 3 * 64 * 128) + 100 * 64;
    assert_eq!(read(json!({})).unwrap().weights_per_token(), expected);
    let grouped = read(json!({"num_key_value_heads": 2})).unwrap();
    let fewer = 2 * (2 * 64 * 32);
    assert_eq!(grouped.weights_per_token(), expected - fewer);
}

/// As transformers 5 has it, which drops all of `rope_parameters` then.
#[test]
fn of_both_rope_keys_the_older_one_counts() {
    let scaled = json!({"rope_type": "linear", "factor": 4.0});
    let parameters = json!({"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5});
    let both = |scaling: &Value| {
        let config = json!({
            "rope_theta": 3e4, "rope_parameters": parameters, "rope_scaling": scaling,
        });
        read(config).unwrap().rope.unwrap()
    };
    let rope = |theta, factor| RopeConfig {
        theta,
        scaling: RopeScaling::Linear { factor },
    };
    assert_eq!(both(&scaled), rope(3e4, 4.0));
    for nothing in [json!({}), Value::Null] {
        assert_eq!(both(&nothing), rope(5e5, 2.0));
    }
}

#[test]
fn eos_may_be_one_or_many() {
    assert_eq!(read(json!({"eos_token_id": 2})).unwrap().eos_token_ids, [2]);
    assert_eq!(
        read(json!({"eos_token_id": [2, 5]})).unwrap().eos_token_ids,
        [2, 5]
    );
    assert!(
        read(json!({"eos_token_id": null}))
            .unwrap()
            .eos_token_ids
            .is_empty()
    );
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    assert_eq!(
        message(json!({"model_type": "mamba"})),
        "model type \"mamba\" is not supported: \
         llama, mistral, qwen2, qwen3, gemma2, gemma3_text, gemma3, t5 are"
    );
    assert_eq!(
        message(json!({"architectures": ["LlamaForSequenceClassification"]})),
        "architecture \"LlamaForSequenceClassification\" is not supported: LlamaForCausalLM is"
    );
    assert_eq!(
        message(json!({"rope_scaling": {"type": "yarn", "factor": 4.0}})),
        "rope type \"yarn\" is not supported: default, linear and llama3 are"
    );
    assert_eq!(
        message(json!({"rope_scaling": {"rope_type": "llama3", "factor": 4.0}})),
        "rope type llama3 needs low_freq_factor"
    );
    assert_eq!(
        message(json!({"rope_scaling": {"rope_type": "linear"}})),
        "rope type linear needs factor"
    );
    assert_eq!(
        message(json!({"hidden_act": "gelu"})),
        "hidden_act \"gelu\" is not supported: silu or swish is"
    );
    assert_eq!(
        message(json!({"quantization_config": {"quant_method": "gptq", "bits": 4}})),
        "weights quantised by \"gptq\" are not supported: \
         take the model in f32, f16 or bf16, it is quantised when loaded"
    );
}

#[test]
fn impossible_sizes_are_refused_by_name() {
    for (changes, key) in [
        (json!({"num_hidden_layers": 0}), "num_hidden_layers"),
        (json!({"num_attention_heads": 0}), "num_attention_heads"),
        (json!({"num_attention_heads": 5}), "num_attention_heads"),
        (json!({"num_key_value_heads": 3}), "num_key_value_heads"),
        (json!({"head_dim": 15}), "head_dim"),
        (json!({"vocab_size": u64::MAX}), "vocab_size"),
        (json!({"rms_norm_eps": 0.0}), "rms_norm_eps"),
        (json!({"rope_theta": -1.0}), "rope_theta"),
        (
            json!({"partial_rotary_factor": 0.5}),
            "partial_rotary_factor",
        ),
        (
            json!({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}),
            "rope_parameters",
        ),
        (
            json!({"rope_scaling": {"rope_type": "linear", "factor": 0.5}}),
            "factor",
        ),
        (
            json!({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}),
            "low_freq_factor",
        ),
        (json!({"eos_token_id": [1, 100]}), "eos_token_id"),
        (
            json!({"rope_scaling": {"rope_type": "llama3", "factor": 0.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}),
            "factor",
        ),
    ] {
        let message = message(changes);
        assert!(message.starts_with(&format!("{key} is ")), "{message}");
    }
}

#[test]
fn a_missing_key_and_one_of_another_kind_are_named() {
    let mut config = base();
    config.as_object_mut().unwrap().remove("hidden_size");
    let error = ModelConfig::from_json(config.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "config.json has no hidden_size");
    for (key, value) in [
        ("hidden_size", json!("64")),
        ("head_dim", json!(-3)),
        ("rope_scaling", json!("yarn")),
    ] {
        assert_eq!(
            message(json!({key: value})),
            format!("config.json's {key} cannot be read")
        );
    }
    assert!(matches!(
        ModelConfig::from_json(b"[]"),
        Err(ConfigError::Json(_))
    ));
}
