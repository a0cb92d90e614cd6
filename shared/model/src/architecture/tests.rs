use serde_json::{Value, json};

use crate::{
    config::{Activation, Architecture, ModelConfig, RopeConfig},
    rope::RopeScaling,
};

/// A file of `model_type` with the sizes that every file has, and `changes`.
fn file(model_type: &str, changes: &Value) -> Value {
    let mut config = json!({
        "model_type": model_type,
        "vocab_size": 100,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
    });
    let Value::Object(changes) = changes else {
        panic!("changes are an object, not {changes}");
    };
    for (key, value) in changes {
        config[key] = value.clone();
    }
    config
}

fn read(model_type: &str, changes: &Value) -> ModelConfig {
    let file = file(model_type, changes).to_string();
    ModelConfig::from_json(file.as_bytes()).unwrap()
}

fn refused(model_type: &str, changes: &Value) -> String {
    let file = file(model_type, changes).to_string();
    let refused = ModelConfig::from_json(file.as_bytes());
    refused.unwrap_err().to_string()
}

/// Windows by layer: W for a window, f for none.
fn windows(config: &ModelConfig) -> String {
    let windows = (0..config.layers).map(|layer| config.window_of(layer));
    windows
        .map(|window| if window.is_some() { 'W' } else { 'f' })
        .collect()
}

fn rope(theta: f64) -> RopeConfig {
    let scaling = RopeScaling::Default;
    RopeConfig { theta, scaling }
}

#[test]
fn families_have_the_defaults_of_their_own() {
    let shape = |config: &ModelConfig| (config.head_dim, config.tie_word_embeddings);
    let biases = |config: &ModelConfig| (config.qkv_bias, config.output_bias);

    let llama = read("llama", &json!({}));
    assert_eq!(
        (shape(&llama), biases(&llama)),
        ((16, false), (false, false))
    );
    assert_eq!(windows(&llama), "ffffff");
    assert_eq!(
        biases(&read("llama", &json!({"attention_bias": true}))),
        (true, true)
    );

    let mistral = read("mistral", &json!({}));
    assert_eq!(mistral.architecture, Architecture::Mistral);
    assert_eq!(
        (shape(&mistral), biases(&mistral)),
        ((16, false), (false, false))
    );
    assert_eq!(
        (mistral.window, windows(&mistral)),
        (Some(4096), "WWWWWW".into())
    );

    let qwen2 = read("qwen2", &json!({}));
    assert_eq!(
        (shape(&qwen2), biases(&qwen2)),
        ((16, false), (true, false))
    );
    assert!(!qwen2.qk_norm);

    let qwen3 = read("qwen3", &json!({}));
    assert_eq!(
        (shape(&qwen3), biases(&qwen3)),
        ((128, false), (false, false))
    );
    assert_eq!(
        biases(&read("qwen3", &json!({"attention_bias": true}))),
        (true, true)
    );
    assert!(qwen3.qk_norm && !qwen3.post_norms && !qwen3.norm_plus_one);

    for (name, caps) in [
        ("gemma2", (Some(50.0), Some(30.0))),
        ("gemma3_text", (None, None)),
    ] {
        let gemma = read(name, &json!({}));
        assert_eq!(
            (shape(&gemma), biases(&gemma)),
            ((256, true), (false, false))
        );
        assert_eq!(
            (gemma.attention_softcap, gemma.logit_softcap),
            caps,
            "{name}"
        );
        assert!(gemma.post_norms && gemma.norm_plus_one, "{name}");
        assert_eq!(gemma.qk_norm, name == "gemma3_text");
        assert_eq!(gemma.activation, Activation::GeluTanh);
        assert_eq!(
            (gemma.attention_scale, gemma.embedding_scale),
            (1.0 / 16.0, Some(8.0))
        );
    }
}

#[test]
fn null_is_not_the_default() {
    assert_eq!(
        windows(&read("mistral", &json!({"sliding_window": null}))),
        "ffffff"
    );
    let gemma = read(
        "gemma2",
        &json!({"attn_logit_softcapping": null, "final_logit_softcapping": null}),
    );
    assert_eq!((gemma.attention_softcap, gemma.logit_softcap), (None, None));
}

#[test]
fn windows_are_where_files_of_any_age_say() {
    let window = json!({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 4});
    for qwen in ["qwen2", "qwen3"] {
        assert_eq!(windows(&read(qwen, &window)), "ffffWW");
        let mut off = window.clone();
        off["use_sliding_window"] = json!(false);
        assert_eq!(windows(&read(qwen, &off)), "ffffff");
    }
    assert_eq!(windows(&read("gemma2", &json!({}))), "WfWfWf");
    assert_eq!(windows(&read("gemma3_text", &json!({}))), "WWWWWf");
    assert_eq!(
        windows(&read("gemma3_text", &json!({"sliding_window_pattern": 3}))),
        "WWfWWf"
    );
    assert_eq!(
        windows(&read("gemma3_text", &json!({"_sliding_window_pattern": 2}))),
        "WfWfWf"
    );
    let [full, sliding] = ["full_attention", "sliding_attention"];
    let types = json!({"layer_types": [full, full, sliding, full, sliding, sliding]});
    for name in ["gemma2", "gemma3_text"] {
        assert_eq!(windows(&read(name, &types)), "ffWfWW");
    }
    let mut types = types;
    types["use_sliding_window"] = json!(true);
    assert_eq!(windows(&read("qwen3", &types)), "ffWfWW");
}

#[test]
fn gemma3_rotates_in_two_ways() {
    let ropes = |changes: &Value| {
        let config = read("gemma3_text", changes);
        (config.rope.unwrap(), config.window_rope.unwrap())
    };
    let linear = |theta| {
        let scaling = RopeScaling::Linear { factor: 8.0 };
        RopeConfig { theta, scaling }
    };
    let scaling = json!({"rope_type": "linear", "factor": 8.0});
    assert_eq!(ropes(&json!({})), (rope(1e6), rope(1e4)));
    // transformers 4.
    assert_eq!(
        ropes(&json!({"rope_theta": 5e5, "rope_local_base_freq": 2e4, "rope_scaling": scaling})),
        (linear(5e5), rope(2e4))
    );
    // transformers 5.
    let nested = json!({"rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
    }});
    assert_eq!(ropes(&nested), (linear(5e5), rope(2e4)));
    // transformers lays the older key over the newer one, for layers that see everything.
    let both = json!({"rope_scaling": scaling, "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 5e5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
    }});
    assert_eq!(ropes(&both), (linear(5e5), rope(2e4)));
    let half = json!({"rope_parameters": {"full_attention": {"rope_theta": 5e5}}});
    assert_eq!(
        refused("gemma3_text", &half),
        "config.json has no rope_parameters.sliding_attention"
    );
}

/// As Google published the 4 B model.
#[test]
fn the_text_of_a_gemma3_that_sees_pictures_is_read_from_its_section() {
    let file = json!({
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "eos_token_id": [1, 106],
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10_240,
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152},
    });
    let config = ModelConfig::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(
        (config.vocab_size, config.hidden_size, config.layers),
        (262_208, 2560, 34)
    );
    assert_eq!(
        (config.heads, config.kv_heads, config.head_dim),
        (8, 4, 256)
    );
    assert_eq!((config.window, config.context_len), (Some(1024), 131_072));
    assert_eq!(
        (config.bos_token_id, &config.eos_token_ids[..]),
        (Some(2), &[1, 106][..])
    );
    assert_eq!(windows(&config)[..12], *"WWWWWfWWWWWf");
    assert!(config.tie_word_embeddings);
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (model_type, changes, message) in [
        (
            "mistral",
            json!({"sliding_window": 0}),
            "sliding_window is 0: a token sees itself at least, so it must be 1 or more",
        ),
        (
            "gemma2",
            json!({"sliding_window": null}),
            "sliding_window is null: layer_types gives some layers a window, so it must be a number",
        ),
        (
            "gemma2",
            json!({"layer_types": ["full_attention"]}),
            "layer_types is a list of 1: it must have an entry for each of num_hidden_layers",
        ),
        (
            "qwen3",
            json!({"num_hidden_layers": 1, "layer_types": ["chunked_attention"]}),
            "layer_types is \"chunked_attention\" for a layer: full_attention and sliding_attention are \
             supported",
        ),
        (
            "gemma2",
            json!({"query_pre_attn_scalar": 0}),
            "query_pre_attn_scalar is 0: it must be positive",
        ),
        (
            "gemma2",
            json!({"final_logit_softcapping": -1.0}),
            "final_logit_softcapping is -1: it must be positive",
        ),
        (
            "gemma2",
            json!({"hidden_activation": "silu"}),
            "hidden_activation \"silu\" is not supported: gelu_pytorch_tanh or gelu_new is",
        ),
        (
            "gemma3_text",
            json!({"use_bidirectional_attention": true}),
            "use_bidirectional_attention is true: a model whose tokens see later ones generates no text",
        ),
        (
            "gemma3_text",
            json!({"sliding_window_pattern": 0}),
            "sliding_window_pattern is 0: every so many layers one sees everything, so it must be 1 or more",
        ),
    ] {
        assert_eq!(refused(model_type, &changes), message);
    }
}
