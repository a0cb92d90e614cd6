//! Families that both our own runtime and llama.cpp compute: GGUF files must mean the same to both.

use model::gguf_writer::FileFormat;
use model::source::{EngineKind, ModelSource};
use model::{Checkpoint, ModelConfig, embedded};
use serde_json::{Value, json};
use speculation::ports::{LanguageModel, Rows, Segment};

use super::gguf::Gguf;

/// Largest difference of two logits, as a share of the largest.
const TOLERANCE: f32 = 1e-4;

/// What the families have in common, and `own` of one of them.
fn config(own: Value) -> ModelConfig {
    let mut config = json!({
        "vocab_size": 4096, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 256, "hidden_act": "silu", "eos_token_id": 2,
    });
    let Value::Object(own) = own else {
        panic!("keys and values")
    };
    config.as_object_mut().expect("an object").extend(own);
    ModelConfig::from_json(config.to_string().as_bytes()).expect("a config")
}

/// Logits after each of some tokens, `(tokens, vocab_size)`.
fn logits(source: &ModelSource) -> Vec<f32> {
    let mut model = source.load().expect("a model").model;
    let (mut cache, mut rows) = (model.new_cache(), Rows::default());
    let tokens: Vec<u32> = (0..40).map(|at| 3 + at * 97 % 4000).collect();
    let segment = Segment {
        cache: &mut cache,
        tokens: &tokens,
        parents: &[],
        scored_from: 0,
    };
    model.forward(&mut [segment], &mut rows).expect("rows");
    rows.logits
}

#[test]
fn gguf_files_mean_to_llama_cpp_what_they_mean_to_us() {
    let granite = json!({"model_type": "granite", "embedding_multiplier": 12.0, "attention_multiplier": 0.1,
        "residual_multiplier": 0.22, "logits_scaling": 3.0, "tie_word_embeddings": true});
    let olmo2 = json!({"model_type": "olmo2", "tie_word_embeddings": false});
    let glm4 = json!({"model_type": "glm4", "partial_rotary_factor": 0.5, "attention_bias": true,
        "tie_word_embeddings": false});
    for own in [granite, olmo2, glm4] {
        let name = own["model_type"].to_string();
        let tokenizer = embedded::draft().expect("embedded");
        let tokenizer = tokenizer.tokenizer_json().expect("a tokenizer").to_vec();
        let checkpoint = Checkpoint::random(config(own), 7).expect("random weights");
        let checkpoint = checkpoint.with_tokenizer(tokenizer);
        let gguf = Gguf::write(&checkpoint, FileFormat::F32).redrawn();
        let expected = logits(&gguf.source());
        let mut by_us = gguf.source();
        (by_us.engine, by_us.dtype) = (EngineKind::Outrider, "f32".to_owned());
        let found = logits(&by_us);
        let largest = expected.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        let pairs = found.iter().zip(&expected);
        let apart = pairs.fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
        assert_eq!(found.len(), expected.len(), "{name}");
        assert!(apart <= TOLERANCE * largest, "{name}: {apart} of {largest}");
    }
}
