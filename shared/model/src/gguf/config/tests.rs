use super::*;
use crate::{
    config::Architecture,
    gguf::tests::{floats, metadata, strings, tensors, text, wholes},
    rope::RopeScaling,
};

/// Metadata of a small model, with `more` added or put in its place.
fn model(architecture: &str, more: &[(&str, Value)]) -> Metadata {
    let mut all = metadata(&[("general.architecture", text(architecture))]);
    for (name, value) in [
        ("block_count", Value::Whole(3)),
        ("context_length", Value::Whole(512)),
        ("embedding_length", Value::Whole(64)),
        ("feed_forward_length", Value::Whole(128)),
        ("attention.head_count", Value::Whole(4)),
        ("attention.head_count_kv", Value::Whole(2)),
        ("attention.layer_norm_rms_epsilon", Value::Real(1e-6)),
    ] {
        all.0.insert(format!("{architecture}.{name}"), value);
    }
    for (key, value) in more {
        all.0.insert(key.replace("{}", architecture), value.clone());
    }
    all
}

fn read_with(metadata: &Metadata, names: &[&str]) -> Result<ModelConfig, GgufError> {
    let mut all = vec![(
        EMBEDDING,
        &[40_usize, 1][..],
        GgmlDType::F32,
        floats(&[0.0; 40]),
    )];
    for name in names {
        all.push((name, &[1], GgmlDType::F32, floats(&[0.0])));
    }
    let mut file = tensors(&all);
    file.metadata = metadata.clone();
    read(&file)
}

fn config(architecture: &str, more: &[(&str, Value)]) -> ModelConfig {
    read_with(&model(architecture, more), &[]).unwrap()
}

fn message(metadata: &Metadata) -> String {
    let error = read_with(metadata, &[]).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

#[test]
fn sizes_and_constants_are_read() {
    let config = config(
        "llama",
        &[
            ("{}.rope.freq_base", Value::Real(500_000.0)),
            ("tokenizer.ggml.bos_token_id", Value::Whole(1)),
            ("tokenizer.ggml.eos_token_id", Value::Whole(2)),
            ("tokenizer.ggml.eot_token_id", Value::Whole(9)),
        ],
    );
    assert_eq!(config.architecture, Architecture::Llama);
    let widths = [config.vocab_size, config.hidden_size];
    assert_eq!((widths, config.intermediate_size), ([40, 64], 128));
    let heads = [config.heads, config.kv_heads, config.head_dim];
    assert_eq!((config.layers, heads), (3, [4, 2, 16]));
    assert_eq!((config.context_len, config.rms_norm_eps), (512, 1e-6));
    assert_eq!(config.rope.unwrap().theta, 500_000.0);
    assert!(config.tie_word_embeddings && !config.qkv_bias && !config.mlp_bias);
    assert_eq!(config.bos_token_id, Some(1));
    assert_eq!(config.eos_token_ids, [2, 9]);
}

#[test]
fn tensors_tell_what_metadata_does_not() {
    let metadata = model("llama", &[]);
    let names = ["output.weight", "blk.0.attn_q.bias", "blk.0.ffn_gate.bias"];
    let config = read_with(&metadata, &names).unwrap();
    assert!(!config.tie_word_embeddings && config.qkv_bias && config.mlp_bias);
}

#[test]
fn the_head_may_be_wider_than_its_share() {
    let by_key = config("qwen3", &[("{}.attention.key_length", Value::Whole(32))]);
    let by_rotation = config("llama", &[("{}.rope.dimension_count", Value::Whole(32))]);
    assert_eq!((by_key.head_dim, by_rotation.head_dim), (32, 32));
    assert!(by_key.qk_norm);
}

#[test]
fn a_window_makes_a_mistral_of_a_llama() {
    let with = config("llama", &[("{}.attention.sliding_window", Value::Whole(8))]);
    assert_eq!(with.architecture, Architecture::Mistral);
    assert_eq!((with.window_of(0), with.window_of(2)), (Some(8), Some(8)));
    let without = config("llama", &[("{}.attention.sliding_window", Value::Whole(0))]);
    assert_eq!(without.architecture, Architecture::Mistral);
    assert_eq!(without.window_of(0), None);
}

#[test]
fn gemma_has_windows_by_pattern() {
    let windows = |config: &ModelConfig| -> Vec<bool> {
        let window = |layer| config.window_of(layer).is_some();
        (0..config.layers).map(window).collect()
    };
    let gemma2 = config(
        "gemma2",
        &[
            ("{}.attention.sliding_window", Value::Whole(8)),
            ("{}.attn_logit_softcapping", Value::Real(50.0)),
            ("{}.final_logit_softcapping", Value::Real(30.0)),
        ],
    );
    assert_eq!(windows(&gemma2), [true, false, true]);
    let caps = (gemma2.attention_softcap, gemma2.logit_softcap);
    assert_eq!(caps, (Some(50.0), Some(30.0)));
    assert!(gemma2.norm_plus_one && gemma2.post_norms);
    assert_eq!(gemma2.attention_scale, 0.25);
    let window = ("{}.attention.sliding_window", Value::Whole(8));
    let layers = ("{}.block_count", Value::Whole(7));
    let gemma3 = config("gemma3", &[window.clone(), layers]);
    let pattern = [true, true, true, true, true, false, true];
    assert_eq!(windows(&gemma3), pattern);
    let ropes = [gemma3.rope, gemma3.window_rope].map(|rope| rope.unwrap().theta);
    assert_eq!(ropes, [1_000_000.0, 10_000.0]);
    let flags = Value::Array([false, true, true].map(Value::Bool).to_vec());
    let own = config(
        "gemma3",
        &[window, ("{}.attention.sliding_window_pattern", flags)],
    );
    assert_eq!(windows(&own), [false, true, true]);
}

#[test]
fn gemma_3_may_stretch_its_global_rotation() {
    let config = config(
        "gemma3",
        &[
            ("{}.rope.scaling.type", text("linear")),
            ("{}.rope.scaling.factor", Value::Real(8.0)),
        ],
    );
    let stretched = RopeScaling::Linear { factor: 8.0 };
    assert_eq!(config.rope.unwrap().scaling, stretched);
    assert_eq!(config.window_rope.unwrap().scaling, RopeScaling::Default);
}

#[test]
fn tokens_that_end_turns_are_found_by_name() {
    let tokens = strings(&["a", "<|im_end|>", "<|eot_id|>", "<|endoftext|>"]);
    let config = config(
        "qwen2",
        &[
            ("tokenizer.ggml.tokens", tokens),
            ("tokenizer.ggml.token_type", wholes(&[1, 3, 1, 3])),
            ("tokenizer.ggml.eos_token_id", Value::Whole(3)),
        ],
    );
    // The one that is no control token is text.
    assert_eq!(config.eos_token_ids, [3, 1]);
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let with = |key: &str, value| message(&model("llama", &[(key, value)]));
    let experts = with("{}.expert_count", Value::Whole(8));
    let kind = with("{}.block_count", text("three"));
    let no_layer = with("{}.block_count", Value::Whole(0));
    let no_head = with("{}.attention.head_count", Value::Whole(0));
    let yarn = model("qwen2", &[("{}.rope.scaling.type", text("yarn"))]);
    let mut missing = model("llama", &[]);
    missing.0.remove("llama.embedding_length");
    let [missing, nothing] = [message(&missing), message(&Metadata::default())];
    assert_eq!(missing, "its metadata has no llama.embedding_length");
    assert_eq!(nothing, "its metadata has no general.architecture");
    let mamba = r#"architecture "mamba" is not supported in GGUF: llama, "#;
    assert!(message(&model("mamba", &[])).starts_with(mamba));
    let three = r#"its metadata llama.block_count is the string "three""#;
    assert!(kind.starts_with(three), "{kind}");
    for (message, part) in [
        (experts, r#""llama with experts""#),
        (no_layer, "num_hidden_layers"),
        (no_head, "num_attention_heads"),
        (message(&yarn), "yarn"),
    ] {
        assert!(message.contains(part), "{message}");
    }
}
