use candle_core::quantized::GgmlDType;

use super::*;
use crate::{
    gguf::tests::{array, floats, metadata, real, strings, tensors, text, whole, wholes},
    rope::{RopeScaling, Yarn},
};

/// Metadata of a small model, with `more` words added or put in their place: keys and their values.
fn model(architecture: &str, more: &str) -> GgufMetadata {
    let mut all = metadata(&[("general.architecture", text(architecture))]);
    let usual = "block_count=3 context_length=512 embedding_length=64 feed_forward_length=128 \
                 attention.head_count=4 attention.head_count_kv=2 attention.layer_norm_rms_epsilon=1e-6";
    for word in usual.split_whitespace().chain(more.split_whitespace()) {
        let (key, value) = word.split_once('=').unwrap();
        let value = match (value.parse(), value.parse()) {
            (Ok(number), _) => whole(number),
            (_, Ok(number)) => real(number),
            _ => text(value),
        };
        let of = if key.starts_with("tokenizer.") {
            String::new()
        } else {
            format!("{architecture}.")
        };
        all.0.insert(of + key, value);
    }
    all
}

fn read_with(metadata: &GgufMetadata, names: &[&str]) -> Result<ModelConfig, GgufError> {
    let mut all = vec![(
        GGUF_EMBEDDING,
        &[40_usize, 1][..],
        GgmlDType::F32,
        floats(&[0.0; 40]),
    )];
    for name in names {
        all.push((name, &[1], GgmlDType::F32, floats(&[0.0])));
    }
    let mut file = GgufModel::from(tensors(&all));
    file.metadata = metadata.clone();
    read(&file)
}

fn config(architecture: &str, more: &str) -> ModelConfig {
    read_with(&model(architecture, more), &[]).unwrap()
}

fn message(metadata: &GgufMetadata) -> String {
    let error = read_with(metadata, &[]).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

#[test]
fn sizes_and_constants_are_read() {
    let config = config(
        "llama",
        "rope.freq_base=500000.0 tokenizer.ggml.bos_token_id=1 tokenizer.ggml.eos_token_id=2 \
         tokenizer.ggml.eot_token_id=9",
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
    let names = ["output.weight", "blk.0.attn_q.bias", "blk.0.ffn_gate.bias"];
    let config = read_with(&model("llama", ""), &names).unwrap();
    assert!(!config.tie_word_embeddings && config.qkv_bias && config.mlp_bias);
}

#[test]
fn the_head_may_be_wider_than_its_share() {
    let by_key = config("qwen3", "attention.key_length=32");
    let by_rotation = config("llama", "rope.dimension_count=32");
    assert_eq!((by_key.head_dim, by_rotation.head_dim), (32, 32));
    assert!(by_key.qk_norm);
}

#[test]
fn a_window_makes_a_mistral_of_a_llama() {
    for (reported, window) in [(8, Some(8)), (0, None)] {
        let config = config("llama", &format!("attention.sliding_window={reported}"));
        assert_eq!(config.architecture, Architecture::Mistral);
        assert_eq!([0, 2].map(|layer| config.window_of(layer)), [window; 2]);
    }
}

#[test]
fn gemma_has_windows_by_pattern() {
    let windows = |config: &ModelConfig| -> Vec<bool> {
        let window = |layer| config.window_of(layer).is_some();
        (0..config.layers).map(window).collect()
    };
    let gemma2 = config(
        "gemma2",
        "attention.sliding_window=8 attn_logit_softcapping=50.0 final_logit_softcapping=30.0",
    );
    assert_eq!(windows(&gemma2), [true, false, true]);
    let caps = (gemma2.attention_softcap, gemma2.logit_softcap);
    assert_eq!(caps, (Some(50.0), Some(30.0)));
    assert!(gemma2.norm_plus_one && gemma2.post_norms);
    assert_eq!(gemma2.attention_scale, 0.25);
    // The global rotation alone may be stretched.
    let gemma3 = config(
        "gemma3",
        "attention.sliding_window=8 block_count=7 rope.scaling.type=linear rope.scaling.factor=8.0",
    );
    let pattern = [true, true, true, true, true, false, true];
    assert_eq!(windows(&gemma3), pattern);
    let [rope, window_rope] = [gemma3.rope, gemma3.window_rope].map(Option::unwrap);
    assert_eq!((rope.theta, window_rope.theta), (1_000_000.0, 10_000.0));
    assert_eq!(rope.scaling, RopeScaling::Linear { factor: 8.0 });
    assert_eq!(window_rope.scaling, RopeScaling::Default);
    let flags = array(vec![false, true, true]);
    let mut own = model("gemma3", "attention.sliding_window=8");
    let key = "gemma3.attention.sliding_window_pattern";
    own.0.insert(key.to_owned(), flags);
    assert_eq!(windows(&read_with(&own, &[]).unwrap()), [false, true, true]);
}

#[test]
fn heads_may_rotate_in_part() {
    for architecture in ["phi3", "glm4"] {
        let half = config(architecture, "rope.dimension_count=8");
        let dims = half.rope.unwrap().dims;
        assert_eq!((half.head_dim, dims), (16, Some(8)), "{architecture}");
    }
    let mut pictures = model("glm4", "");
    let sections = wholes(&[8, 12, 12, 0]);
    let key = "glm4.rope.dimension_sections".to_owned();
    pictures.0.insert(key, sections);
    let refused = message(&pictures);
    assert!(refused.contains("glm4 that sees pictures"), "{refused}");
}

#[test]
fn granite_has_multipliers() {
    let found = |more: &str| {
        let config = config("granite", more);
        let (scores, logits) = (config.attention_scale, config.logit_divisor);
        (
            config.embedding_scale,
            scores,
            config.residual_scale,
            logits,
        )
    };
    let all = "embedding_scale=12.0 attention.scale=0.015625 residual_scale=0.22 logit_scale=8.0";
    let expected = (Some(12.0), 0.015_625, Some(0.22), Some(8.0));
    assert_eq!(found(all), expected);
    let usual = (None, 0.25, None, None);
    assert_eq!(found(""), usual);
    assert_eq!(found("attention.scale=0.0 residual_scale=0.0"), usual);
    let names = ["blk.0.attn_q.bias"];
    assert!(read_with(&model("granite", ""), &names).unwrap().qkv_bias);
}

#[test]
fn tokens_that_end_turns_are_found_by_name() {
    let mut metadata = model("qwen2", "tokenizer.ggml.eos_token_id=3");
    let tokens = strings(&["a", "<|im_end|>", "<|eot_id|>", "<|endoftext|>"]);
    let types = wholes(&[1, 4, 1, 3]);
    for (key, value) in [("tokens", tokens), ("token_type", types)] {
        metadata.0.insert(format!("tokenizer.ggml.{key}"), value);
    }
    // Whatever the file calls them.
    let config = read_with(&metadata, &[]).unwrap();
    assert_eq!(config.eos_token_ids, [3, 1, 2]);
}

/// The rotation and the context of a Qwen 3 with `more` in its metadata, whose own context is 512 tokens.
fn stretched(more: &str) -> (Yarn, usize) {
    let config = config("qwen3", &format!("rope.scaling.type=yarn {more}"));
    match config.rope.unwrap().scaling {
        RopeScaling::Yarn(yarn) => (yarn, config.context_len),
        other => panic!("{other:?}"),
    }
}

#[test]
fn yarn_is_what_the_keys_say() {
    let least = Yarn {
        factor: 4.0,
        original_context_len: 512,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: true,
        attention_factor: Yarn::attention(4.0, 1.0) as f32,
    };
    assert_eq!(stretched("rope.scaling.factor=4.0"), (least.clone(), 2048));
    let all = "rope.scaling.factor=4.0 rope.scaling.original_context_length=128 rope.scaling.yarn_beta_fast=16.0 \
               rope.scaling.yarn_beta_slow=2.0 rope.scaling.yarn_attn_factor=1.5 rope.scaling.yarn_ext_factor=1.0";
    let expected = Yarn {
        original_context_len: 128,
        beta_fast: 16.0,
        beta_slow: 2.0,
        attention_factor: 1.5,
        ..least.clone()
    };
    assert_eq!(stretched(all), (expected, 512));
    // llama.cpp multiplies what follows from the factor by this one.
    let (yarn, _) = stretched("rope.scaling.factor=4.0 rope.scaling.attn_factor=0.5");
    assert_eq!(yarn.attention_factor, 0.5 * least.attention_factor);
}

#[test]
fn a_factor_of_no_type_is_linear() {
    let scaling = |more: &str| config("llama", more).rope.unwrap().scaling;
    let linear = RopeScaling::Linear { factor: 2.0 };
    assert_eq!(scaling("rope.scaling.factor=2.0"), linear);
    for none in [
        "rope.scaling.factor=0.0",
        "rope.scaling.factor=2.0 rope.scaling.type=none",
    ] {
        assert_eq!(scaling(none), RopeScaling::Default);
    }
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    for row in [
        r#"mamba |  | architecture "mamba" is not supported in GGUF: llama, "#,
        r#"llama | block_count=three | its metadata llama.block_count is the string "three""#,
        r#"llama | expert_count=8 | "llama with experts""#,
        "llama | block_count=0 | num_hidden_layers",
        "gemma2 | block_count=4097 | gemma2.block_count is 4097, expected at most 4096",
        "llama | attention.head_count=0 | num_attention_heads",
        r#"olmo2 | attention.sliding_window=8 | "olmo2 with windows (OLMo 3)""#,
        "granite | logit_scale=-8.0 | logits_scaling is -8",
        "granite | residual_scale=much | granite.residual_scale is the string",
        "qwen2 | rope.scaling.type=ntk | ntk",
        "qwen2 | rope.scaling.type=yarn | its metadata has no qwen2.rope.scaling.factor",
        "qwen2 | rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.yarn_ext_factor=0.5 | qwen2.rope.scaling.yarn_ext_factor is 0.5",
    ] {
        let [architecture, more, part] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let message = message(&model(architecture, more));
        assert!(message.contains(part), "{message}");
    }
    let mut missing = model("llama", "");
    missing.0.remove("llama.embedding_length");
    for (metadata, key) in [
        (missing, "llama.embedding_length"),
        (GgufMetadata::default(), "general.architecture"),
    ] {
        assert_eq!(message(&metadata), format!("its metadata has no {key}"));
    }
}
