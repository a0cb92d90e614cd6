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

/// Puts each of `changes` into a file.
pub(crate) fn change(file: &mut Value, changes: Value) {
    let Value::Object(changes) = changes else {
        panic!("changes are an object, not {changes}");
    };
    for (key, value) in changes {
        file[key] = value;
    }
}

fn read(changes: Value) -> Result<ModelConfig, ModelConfigError> {
    let mut config = base();
    change(&mut config, changes);
    ModelConfig::from_json(config.to_string().as_bytes())
}

fn llama3() -> Value {
    json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    })
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
    for other in [old, both, older] {
        assert_eq!(new, other);
    }
    let scaling = new.rope.unwrap().scaling;
    assert!(matches!(scaling, RopeScaling::Llama3 { factor: 8.0, .. }));
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
        dims: None,
    };
    assert_eq!(both(&scaled), rope(3e4, 4.0));
    for nothing in [json!({}), Value::Null] {
        assert_eq!(both(&nothing), rope(5e5, 2.0));
    }
}

#[test]
fn eos_may_be_one_or_many() {
    for (eos, expected) in [
        (json!(2), &[2][..]),
        (json!([2, 5]), &[2, 5]),
        (Value::Null, &[]),
    ] {
        let config = read(json!({"eos_token_id": eos})).unwrap();
        assert_eq!(config.eos_token_ids, expected);
    }
}

#[test]
fn a_missing_key_and_what_is_no_object_are_refused() {
    let mut config = base();
    config.as_object_mut().unwrap().remove("hidden_size");
    let error = ModelConfig::from_json(config.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "config.json has no hidden_size");
    let error = ModelConfig::from_json(b"[]");
    assert!(matches!(error, Err(ModelConfigError::Json(_))));
}

/// A small file of each family, what is changed in it, and what is said then: all of it, or how it begins.
const REFUSALS: &str = r#"
llama | {"model_type": "mamba"} | model type "mamba" is not supported: llama, mistral, qwen2, qwen3, gemma2, gemma3_text, gemma3, phi3, smollm3, granite, olmo2, glm4, t5 are
llama | {"architectures": ["LlamaForSequenceClassification"]} | architecture "LlamaForSequenceClassification" is not supported: LlamaForCausalLM is
llama | {"rope_scaling": {"type": "ntk", "factor": 4.0}} | rope type "ntk" is not supported: default, linear, dynamic, llama3, yarn and longrope are
llama | {"rope_scaling": {"factor": 4.0}} | rope_scaling has factor and no rope_type: add the kind that it is, as default, linear, dynamic, llama3, yarn or longrope
llama | {"rope_parameters": {"rope_theta": 1e4, "rope_type": null, "mrope_section": [1]}} | rope_parameters has mrope_section and no rope_type: ...
llama | {"rope_scaling": {"rope_type": "yarn", "factor": 0.5}} | factor is 0.5: a rope's factor must be at least 1
llama | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 0}} | original_max_position_embeddings is 0: it must be between 1 and 2^28
llama | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 1.0}} | beta_slow is 1: it must be at least 0.001, and below beta_fast
llama | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 1e300}} | beta_fast is ...
llama | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 0.0}} | attention_factor is 0: it must be positive
llama | {"rope_scaling": {"rope_type": "yarn", "factor": 1e9}} | max_position_embeddings is ...
llama | {"rope_scaling": {"rope_type": "dynamic"}} | rope type dynamic needs factor
llama | {"rope_scaling": {"rope_type": "llama3", "factor": 4.0}} | rope type llama3 needs low_freq_factor
llama | {"rope_scaling": {"rope_type": "linear"}} | rope type linear needs factor
llama | {"hidden_act": "gelu"} | hidden_act "gelu" is not supported: silu or swish is
llama | {"quantization_config": {"quant_method": "gptq", "bits": 4}} | weights quantised by "gptq" are not supported: take the model in f32, f16 or bf16, it is quantised when loaded
llama | {"hidden_size": "64"} | config.json's hidden_size cannot be read
llama | {"head_dim": -3} | config.json's head_dim cannot be read
llama | {"rope_scaling": "yarn"} | config.json's rope_scaling cannot be read
llama | {"num_hidden_layers": 0} | num_hidden_layers is ...
llama | {"num_attention_heads": 0} | num_attention_heads is ...
llama | {"num_attention_heads": 5} | num_attention_heads is ...
llama | {"num_key_value_heads": 3} | num_key_value_heads is ...
llama | {"head_dim": 15} | head_dim is ...
llama | {"vocab_size": 18446744073709551615} | vocab_size is ...
llama | {"rms_norm_eps": 0.0} | rms_norm_eps is ...
llama | {"rope_theta": -1.0} | rope_theta is ...
llama | {"partial_rotary_factor": 0.5} | partial_rotary_factor is ...
llama | {"rope_parameters": {"full_attention": {"rope_theta": 1e4}}} | rope_parameters is ...
llama | {"rope_scaling": {"rope_type": "linear", "factor": 0.5}} | factor is ...
llama | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}} | low_freq_factor is ...
llama | {"rope_scaling": {"rope_type": "llama3", "factor": 0.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}} | factor is ...
llama | {"eos_token_id": [1, 100]} | eos_token_id is ...
mistral | {"sliding_window": 0} | sliding_window is 0: a token sees itself at least, so it must be 1 or more
gemma2 | {"sliding_window": null} | sliding_window is null: layer_types gives some layers a window, so it must be a number
gemma2 | {"layer_types": ["full_attention"]} | layer_types is a list of 1: it must have an entry for each of num_hidden_layers
qwen3 | {"num_hidden_layers": 1, "layer_types": ["chunked_attention"]} | layer_types is "chunked_attention" for a layer: full_attention and sliding_attention are supported
gemma2 | {"query_pre_attn_scalar": 0} | query_pre_attn_scalar is 0: it must be positive
gemma2 | {"final_logit_softcapping": -1.0} | final_logit_softcapping is -1: it must be positive
gemma2 | {"hidden_activation": "silu"} | hidden_activation "silu" is not supported: gelu_pytorch_tanh or gelu_new is
gemma3_text | {"use_bidirectional_attention": true} | use_bidirectional_attention is true: a model whose tokens see later ones generates no text
gemma3_text | {"sliding_window_pattern": 0} | sliding_window_pattern is 0: every so many layers one sees everything, so it must be 1 or more
gemma3_text | {"rope_parameters": {"full_attention": {"rope_theta": 5e5}}} | config.json has no rope_parameters.sliding_attention
smollm3 | {"no_rope_layers": [1, 0]} | no_rope_layers is a list of 2: it must have an entry for each of num_hidden_layers
smollm3 | {"no_rope_layer_interval": 0} | no_rope_layer_interval is 0: every so many layers one does not rotate, so it must be 1 or more
glm4 | {"head_dim": 12, "partial_rotary_factor": 0.25} | partial_rotary_factor is 3 of 12 dimensions: an even number of a head's dimensions must rotate
glm4 | {"partial_rotary_factor": 0.0} | partial_rotary_factor is 0: it must be above 0 and at most 1
glm4 | {"hidden_act": "gelu"} | hidden_act "gelu" is not supported: silu or swish is
glm4 | {"model_type": "chatglm"} | model type "chatglm" is not supported: ...
granite | {"embedding_multiplier": 0.0} | embedding_multiplier is 0: it must be positive, and neither too small nor too large for f32
granite | {"residual_multiplier": -0.22} | residual_multiplier is -0.22: it must be positive, ...
granite | {"attention_multiplier": 1e-50} | attention_multiplier is ...
granite | {"attention_multiplier": null} | config.json has no attention_multiplier
granite | {"logits_scaling": 1e39} | logits_scaling is ...
granite | {"hidden_act": "gelu"} | hidden_act "gelu" is not supported: silu or swish is
phi3 | {"rope_scaling": {"type": "longrope", "long_factor": [1.0]}} | rope type longrope needs short_factor
phi3 | {"rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}} | short_factor is a list of 1: it must have a number for each pair of dimensions that rotate
phi3 | {"partial_rotary_factor": 0.25, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [1.0, 0.0]}} | long_factor is 0: each must be positive
phi3 | {"partial_rotary_factor": 0.07} | partial_rotary_factor is 1 of 16 dimensions: an even number of a head's dimensions must rotate
phi3 | {"partial_rotary_factor": 1.5} | partial_rotary_factor is 1.5: it must be above 0 and at most 1
phi3 | {"original_max_position_embeddings": 1, "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}} | ...
t5 | {"architectures": ["T5EncoderModel"]} | architecture "T5EncoderModel" is not supported: T5ForConditionalGeneration or T5WithLMHeadModel is
t5 | {"feed_forward_proj": "gelu"} | feed_forward_proj is ...
t5 | {"feed_forward_proj": "gated-swish-2"} | feed_forward_proj is ...
t5 | {"d_model": 0} | d_model is ...
t5 | {"d_model": null} | config.json has no d_model
t5 | {"d_kv": 0} | d_kv is ...
t5 | {"d_ff": 1099511627776} | d_ff is ...
t5 | {"num_heads": 0} | num_heads is ...
t5 | {"num_layers": 0} | num_layers is ...
t5 | {"num_decoder_layers": 0} | num_decoder_layers is ...
t5 | {"vocab_size": 0} | vocab_size is ...
t5 | {"n_positions": 1073741824} | n_positions is ...
t5 | {"relative_attention_num_buckets": 6} | relative_attention_num_buckets is ...
t5 | {"relative_attention_max_distance": 16} | relative_attention_max_distance is ...
t5 | {"layer_norm_epsilon": 0.0} | layer_norm_epsilon is ...
t5 | {"eos_token_id": 32128} | eos_token_id is ...
t5 | {"decoder_start_token_id": 32128} | decoder_start_token_id is ...
"#;

#[test]
fn what_makes_no_sense_or_is_not_supported_is_refused_by_name() {
    for case in REFUSALS.trim().lines() {
        let [family, changes, expected] = case.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let mut file = match family {
            "llama" => base(),
            "t5" => architecture::t5::tests::old(),
            family => architecture::tests::file(family),
        };
        change(&mut file, serde_json::from_str(changes).unwrap());
        let refused = ModelConfig::from_json(file.to_string().as_bytes());
        let message = refused.expect_err(case).to_string();
        let fits = match expected.strip_suffix("...") {
            Some(beginning) => message.starts_with(beginning),
            None => message == expected,
        };
        assert!(fits, "{case}: {message}");
    }
}
