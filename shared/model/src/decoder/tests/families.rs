//! Models of every family, with weights that were never trained.

use safetensors::{Dtype, serialize, tensor::TensorView};
use serde_json::json;

use super::*;
use crate::{decoder::tensors::LayerPart, weights::Weights};

/// A file of `model_type` as the family's defaults complete it, and small.
fn small(model_type: &str) -> ModelConfig {
    let file = json!({
        "model_type": model_type,
        "vocab_size": 101,
        "hidden_size": 48,
        "intermediate_size": 72,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "query_pre_attn_scalar": 12,
        "max_position_embeddings": 96,
        "sliding_window": 9,
        "rms_norm_eps": 1e-6,
        "bos_token_id": 1,
        "eos_token_id": 2,
    });
    ModelConfig::from_json(file.to_string().as_bytes()).unwrap()
}

/// Weights as of a random model with a tied head, each tensor under the name and with the numbers that
/// `change` makes of its own.
pub(super) fn changed(
    config: &ModelConfig,
    change: impl Fn(&str, &[usize], Vec<f32>) -> (String, Vec<f32>),
) -> Weights {
    let random = Checkpoint::random(config.clone(), 7).unwrap();
    let names = TensorNames::TEXT;
    let (vocab, hidden) = (config.vocab_size, config.hidden_size);
    let mut shapes = vec![
        (names.embedding(), vec![vocab, hidden]),
        (names.norm(), vec![hidden]),
    ];
    for layer in 0..config.layers {
        let parts = LayerPart::of(config);
        shapes.extend(parts.map(|part| (names.weight(config, layer, part), part.shape(config))));
    }
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let values = random.weights().tensor(&name, &shape).unwrap();
            let (name, values) = change(&name, &shape, values);
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            (name, shape, bytes.collect())
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
        (name, view)
    });
    Weights::from_bytes(serialize(views, None).unwrap()).unwrap()
}

#[test]
fn random_models_of_every_family_run() {
    for model_type in [
        "llama",
        "mistral",
        "qwen2",
        "qwen3",
        "gemma2",
        "gemma3_text",
        "phi3",
        "granite",
        "olmo2",
        "glm4",
    ] {
        for format in WeightFormat::ALL {
            let mut model = load(small(model_type), format);
            let (logits, _) = fresh(&mut model, &text(30, 1));
            let largest = logits.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
            assert!(largest > 0.1 && largest < 100.0, "{model_type}: {largest}");
            assert!(logits.iter().all(|logit| logit.is_finite()), "{model_type}");
        }
    }
}

#[test]
fn norms_of_random_models_multiply_by_one() {
    for (model_type, weight) in [("llama", 1.0), ("gemma2", 0.0)] {
        let random = Checkpoint::random(small(model_type), 7).unwrap();
        let norm = random.weights().tensor("model.norm.weight", &[48]).unwrap();
        assert_eq!(norm, [weight; 48], "{model_type}");
    }
}

/// What a family has that Llama has not is asked for by name.
#[test]
fn tensors_that_a_family_needs_are_named() {
    let llama = Checkpoint::random(small("llama"), 7).unwrap();
    let missing = |model_type: &str| {
        let mut config = small(model_type);
        config.tie_word_embeddings = llama.config().tie_word_embeddings;
        let refused = Decoder::load(&config, llama.weights(), WeightFormat::F32);
        refused.unwrap_err().to_string()
    };
    for (model_type, part) in [
        ("qwen2", "self_attn.q_proj.bias"),
        ("qwen3", "self_attn.q_norm.weight"),
        ("gemma3_text", "self_attn.q_norm.weight"),
        ("gemma2", "pre_feedforward_layernorm.weight"),
        ("olmo2", "self_attn.q_norm.weight"),
        ("glm4", "post_self_attn_layernorm.weight"),
    ] {
        assert_eq!(
            missing(model_type),
            format!("tensor model.layers.0.{part} is missing")
        );
    }
}

#[test]
fn norms_of_each_head_are_not_those_of_all() {
    let of_heads = Checkpoint::random(small("qwen3"), 7).unwrap();
    let refused = Decoder::load(&small("olmo2"), of_heads.weights(), WeightFormat::F32);
    let norm = "tensor model.layers.0.self_attn.q_norm.weight";
    assert_eq!(
        refused.unwrap_err().to_string(),
        format!("{norm} has shape [12], the config implies [48]")
    );
}

/// The same tensors where models that see pictures keep them.
#[test]
fn a_nested_language_model_is_found() {
    let config = small("gemma3_text");
    let expected = fresh(&mut load(config.clone(), WeightFormat::F32), &text(20, 1));
    for prefix in ["language_model.model.", "model.language_model."] {
        let nested = changed(&config, |name, _, values| {
            (name.replacen("model.", prefix, 1), values)
        });
        let mut model = Decoder::load(&config, &nested, WeightFormat::F32).unwrap();
        assert_eq!(fresh(&mut model, &text(20, 1)), expected, "{prefix}");
    }
}

#[test]
fn weights_that_are_not_numbers_are_refused_by_name() {
    let config = small("gemma3_text");
    let broken = "model.layers.1.self_attn.k_norm.weight";
    let weights = changed(&config, |name, _, mut values| {
        if name == broken {
            values[3] = f32::NAN;
        }
        (name.to_owned(), values)
    });
    let refused = Decoder::load(&config, &weights, WeightFormat::Q8_0);
    assert_eq!(
        refused.unwrap_err().to_string(),
        format!("tensor {broken} holds numbers that are not finite")
    );
}
