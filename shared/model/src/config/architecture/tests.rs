use serde_json::{Value, json};

use crate::{
    config::{Activation, Architecture, ModelConfig, RopeConfig, tests::change},
    rope::RopeScaling,
};

/// A file of `model_type` with the sizes that every file has.
pub(crate) fn file(model_type: &str) -> Value {
    json!({
        "model_type": model_type,
        "vocab_size": 100,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
    })
}

fn read(model_type: &str, changes: &Value) -> ModelConfig {
    let mut file = file(model_type);
    change(&mut file, changes.clone());
    ModelConfig::from_json(file.to_string().as_bytes()).unwrap()
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
    RopeConfig {
        theta,
        scaling,
        dims: None,
    }
}

#[test]
fn families_have_the_defaults_of_their_own() {
    let biased = json!({"attention_bias": true});
    let all = json!({});
    // Head dimension, whether the head is tied, and biases: of queries, keys and values, and of the output.
    for (name, changes, head_dim, tied, biases) in [
        ("llama", &all, 16, false, (false, false)),
        ("llama", &biased, 16, false, (true, true)),
        ("mistral", &all, 16, false, (false, false)),
        ("qwen2", &all, 16, false, (true, false)),
        ("qwen3", &all, 128, false, (false, false)),
        ("qwen3", &biased, 128, false, (true, true)),
        ("smollm3", &all, 16, true, (false, false)),
        ("glm4", &all, 128, false, (false, false)),
        ("glm4", &biased, 128, false, (true, false)),
        ("olmo2", &all, 16, false, (false, false)),
        ("olmo2", &biased, 16, false, (true, true)),
        ("granite", &all, 16, false, (false, false)),
        ("granite", &biased, 16, false, (true, true)),
        ("gemma2", &all, 256, true, (false, false)),
        ("gemma3_text", &all, 256, true, (false, false)),
    ] {
        let config = read(name, changes);
        let shape = (config.head_dim, config.tie_word_embeddings);
        assert_eq!(shape, (head_dim, tied), "{name}");
        let found = (config.qkv_bias, config.output_bias);
        assert_eq!(found, biases, "{name}");
        let normed = ["qwen3", "gemma3_text", "olmo2"].contains(&name);
        assert_eq!(config.qk_norm, normed, "{name}");
        let (is_gemma, is_olmo) = (name.starts_with("gemma"), name == "olmo2");
        assert_eq!(config.norm_plus_one, is_gemma, "{name}");
        let norms = (config.pre_norms, config.post_norms, config.qk_norm_whole);
        let after = is_gemma || is_olmo || name == "glm4";
        assert_eq!(norms, (!is_olmo, after, is_olmo), "{name}");
    }
    assert_eq!(windows(&read("llama", &all)), "ffffff");
    let mistral = read("mistral", &all);
    assert_eq!(mistral.architecture, Architecture::Mistral);
    assert_eq!(
        (mistral.window, &windows(&mistral)[..]),
        (Some(4096), "WWWWWW")
    );
    for (name, caps) in [
        ("gemma2", (Some(50.0), Some(30.0))),
        ("gemma3_text", (None, None)),
    ] {
        let gemma = read(name, &all);
        let found = (gemma.attention_softcap, gemma.logit_softcap);
        assert_eq!(found, caps, "{name}");
        assert_eq!(gemma.activation, Activation::GeluTanh);
        let scales = (gemma.attention_scale, gemma.embedding_scale);
        assert_eq!(scales, (1.0 / 16.0, Some(8.0)));
    }
}

#[test]
fn null_is_not_the_default() {
    let mistral = read("mistral", &json!({"sliding_window": null}));
    assert_eq!(windows(&mistral), "ffffff");
    let none = json!({"attn_logit_softcapping": null, "final_logit_softcapping": null});
    let gemma = read("gemma2", &none);
    assert_eq!((gemma.attention_softcap, gemma.logit_softcap), (None, None));
}

#[test]
fn windows_are_where_files_of_any_age_say() {
    let window = |used: bool| json!({"use_sliding_window": used, "sliding_window": 8, "max_window_layers": 4});
    let [full, sliding] = ["full_attention", "sliding_attention"];
    let listed = [full, full, sliding, full, sliding, sliding];
    let types = json!({"layer_types": listed});
    for (name, changes, expected) in [
        ("qwen2", window(true), "ffffWW"),
        ("qwen2", window(false), "ffffff"),
        ("qwen3", window(true), "ffffWW"),
        ("qwen3", window(false), "ffffff"),
        ("gemma2", json!({}), "WfWfWf"),
        ("gemma3_text", json!({}), "WWWWWf"),
        (
            "gemma3_text",
            json!({"sliding_window_pattern": 3}),
            "WWfWWf",
        ),
        (
            "gemma3_text",
            json!({"_sliding_window_pattern": 2}),
            "WfWfWf",
        ),
        ("gemma2", types.clone(), "ffWfWW"),
        ("gemma3_text", types, "ffWfWW"),
        (
            "qwen3",
            json!({"layer_types": listed, "use_sliding_window": true}),
            "ffWfWW",
        ),
    ] {
        assert_eq!(windows(&read(name, &changes)), expected, "{name} {changes}");
    }
}

#[test]
fn gemma3_rotates_in_two_ways() {
    let ropes = |changes: &Value| {
        let config = read("gemma3_text", changes);
        (config.rope.unwrap(), config.window_rope.unwrap())
    };
    let linear = |theta| {
        let scaling = RopeScaling::Linear { factor: 8.0 };
        RopeConfig {
            theta,
            scaling,
            dims: None,
        }
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
fn smollm3_leaves_layers_unrotated() {
    let layers = |changes: Value| {
        let config = read("smollm3", &changes);
        let rotated = (0..6).map(|layer| if config.is_rotated(layer) { 'R' } else { 'n' });
        (rotated.collect::<String>(), windows(&config))
    };
    let of = |rotated: &str, windows: &str| (rotated.to_owned(), windows.to_owned());
    assert_eq!(layers(json!({})), of("RRRnRR", "ffffff"));
    assert_eq!(read("smollm3", &json!({})).rope, Some(rope(2e6)));
    assert_eq!(
        layers(json!({"no_rope_layer_interval": 2})),
        of("RnRnRn", "ffffff")
    );
    // The list counts, which may be longer.
    let list = json!({"no_rope_layer_interval": 2, "no_rope_layers": [0, 1, 1, 1, 1, 0, 0]});
    assert_eq!(layers(list), of("nRRRRn", "ffffff"));
    let windows = json!({"use_sliding_window": true, "sliding_window": 8});
    assert_eq!(layers(windows), of("RRRnRR", "fffWff"));
    assert!((0..6).all(|layer| read("llama", &json!({})).is_rotated(layer)));
}

#[test]
fn granite_has_multipliers() {
    let found = |changes: Value| {
        let config = read("granite", &changes);
        let (scores, logits) = (config.attention_scale, config.logit_divisor);
        (
            config.embedding_scale,
            scores,
            config.residual_scale,
            logits,
        )
    };
    // As IBM published Granite 3.3 2B.
    let published = json!({
        "embedding_multiplier": 12.0, "attention_multiplier": 0.015_625, "residual_multiplier": 0.22, "logits_scaling": 8.0,
    });
    let expected = (Some(12.0), 0.015_625, Some(0.22), Some(8.0));
    assert_eq!(found(published), expected);
    assert_eq!(found(json!({})), (None, 1.0, None, None));
}

#[test]
fn glm4_rotates_half_of_a_head() {
    for (changes, dims) in [
        (json!({}), Some(64)),
        (json!({"partial_rotary_factor": 0.25}), Some(32)),
        (
            json!({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 1.0}}),
            None,
        ),
    ] {
        let expected = RopeConfig { dims, ..rope(1e4) };
        assert_eq!(read("glm4", &changes).rope, Some(expected), "{changes}");
    }
}
