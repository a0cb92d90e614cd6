//! Tiny checkpoints against what Hugging Face transformers computes for them in float32, and a model of
//! odd sizes against this crate's own kernels.

use std::{fs, path::PathBuf};

use safetensors::SafeTensors;

use super::*;
use crate::{config::Architecture, decoder::Decoder, linear::WeightFormat};

/// The decoder-only ones.
const MODELS: [&str; 7] = [
    "llama",
    "llama3-rope",
    "mistral-sliding",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
];

/// What the reference computed for one row of input.
struct Golden {
    input: Vec<TokenId>,
    logits: Vec<f32>,
    hidden: Vec<f32>,
    greedy: Vec<TokenId>,
}

fn folder(name: &str) -> PathBuf {
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/models");
    PathBuf::from(models).join(name)
}

fn golden(name: &str) -> Vec<Golden> {
    let bytes = fs::read(folder(name).join("golden.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let ids = |key: &str| -> Vec<Vec<TokenId>> {
        let tensor = file.tensor(key).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<8>();
        let ids = numbers.iter().map(|n| i64::from_le_bytes(*n) as TokenId);
        let ids: Vec<_> = ids.collect();
        ids.chunks(tensor.shape()[1]).map(<[_]>::to_vec).collect()
    };
    let floats = |key: &str| -> Vec<Vec<f32>> {
        let tensor = file.tensor(key).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let values: Vec<_> = numbers.iter().map(|n| f32::from_le_bytes(*n)).collect();
        let row = tensor.shape()[1] * tensor.shape()[2];
        values.chunks(row).map(<[_]>::to_vec).collect()
    };
    let rows = ids("input_ids").into_iter().zip(floats("logits"));
    rows.zip(floats("hidden").into_iter().zip(ids("greedy")))
        .map(|((input, logits), (hidden, greedy))| Golden {
            input,
            logits,
            hidden,
            greedy,
        })
        .collect()
}

/// The root mean square of the differences over that of `expected`.
fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    let pairs = found.iter().zip(expected);
    let error: f32 = pairs.map(|(a, b)| (a - b).powi(2)).sum();
    let power: f32 = expected.iter().map(|b| b.powi(2)).sum();
    (error / power).sqrt()
}

/// A model whose rows are whole blocks.
fn wide() -> ModelConfig {
    ModelConfig {
        hidden_size: 256,
        intermediate_size: 512,
        heads: 4,
        head_dim: 64,
        attention_scale: 0.125,
        ..config()
    }
}

fn open(name: &str, format: NumberFormat) -> DeviceModel {
    load(&Checkpoint::open(&folder(name)).unwrap(), format)
}

#[test]
fn logits_and_hidden_states_are_the_references() {
    for name in MODELS {
        let mut model = open(name, NumberFormat::F32);
        for row in golden(name) {
            let (logits, hidden) = fresh(&mut model, &row.input);
            assert_near(&logits, &row.logits, &format!("logits of {name}"));
            assert_near(&hidden, &row.hidden, &format!("hidden states of {name}"));
        }
    }
}

#[test]
fn greedy_continuations_are_the_references() {
    for name in MODELS {
        let mut model = open(name, NumberFormat::F32);
        let vocab = model.shape().vocab_size;
        for row in golden(name) {
            let mut cache = model.new_cache();
            let (mut logits, _) = extend(&mut model, &mut cache, &row.input);
            let mut found = Vec::new();
            while found.len() < row.greedy.len() {
                let last = &logits[logits.len() - vocab..];
                let best = (0..vocab).max_by(|&a, &b| last[a].total_cmp(&last[b]));
                found.push(best.unwrap() as TokenId);
                (logits, _) = extend(&mut model, &mut cache, &found[found.len() - 1..]);
            }
            assert_eq!(found, row.greedy, "{name}");
        }
    }
}

/// Rounding to 11 and 8 bits, in models whose weights are so wide (standard deviation 0.2) that it grows from
/// layer to layer; a mistake in a conversion would be of the order of 1.
#[test]
fn half_precision_is_near_the_references() {
    for (format, bound) in [(NumberFormat::F16, 0.01), (NumberFormat::Bf16, 0.08)] {
        for name in MODELS {
            let mut model = open(name, format);
            for row in golden(name) {
                let (logits, _) = fresh(&mut model, &row.input);
                let error = relative_error(&logits, &row.logits);
                assert!(error < bound, "{name} in {format}: relative error {error}");
            }
        }
    }
}

#[test]
fn odd_sizes_windows_and_caps_are_those_of_our_own_kernels() {
    let checkpoint = Checkpoint::random(config(), 7).unwrap();
    let mut ours =
        Decoder::load(checkpoint.config(), checkpoint.weights(), WeightFormat::F32).unwrap();
    let mut model = load(&checkpoint, NumberFormat::F32);
    let expected = fresh(&mut ours, &text(90, 3));
    let found = fresh(&mut model, &text(90, 3));
    assert_near(&found.0, &expected.0, "logits");
    assert_near(&found.1, &expected.1, "hidden states");
}

#[test]
fn a_missing_and_a_misshapen_tensor_are_named() {
    let checkpoint = Checkpoint::random(config(), 7).unwrap();
    let load = |config: &ModelConfig| {
        let weights = checkpoint.weights();
        let refused = DeviceModel::load(config, weights, NumberFormat::F32, ComputeDevice::Cpu);
        refused.unwrap_err().to_string()
    };
    let mut encoding = config();
    encoding.gated = false;
    assert!(load(&encoding).contains("device cpu only"));
    let attention = "model.layers.0.self_attn";
    trials::refusals_name_the_tensor(
        &config(),
        load,
        &[
            (
                |c| c.qk_norm = true,
                &format!("{attention}.q_norm.weight is missing"),
            ),
            (
                |c| c.kv_heads = 3,
                &format!(
                    "{attention}.k_proj.weight has shape [20, 48], the config implies [30, 48]"
                ),
            ),
        ],
    );
}

/// The same blocks by our own kernels, with hidden states in f32; in bf16 alone models are as far apart.
#[test]
fn weights_in_blocks_are_near_what_the_cpu_computes() {
    for (format, exact) in [
        (NumberFormat::Q8_0, WeightFormat::Q8_0),
        (NumberFormat::Q4_K, WeightFormat::Q4_K),
    ] {
        let checkpoint = Checkpoint::synthetic(wide(), 7, format).unwrap();
        let mut ours = checkpoint.load(exact).unwrap();
        let mut model = load(&checkpoint, format);
        // As many rows as one kernel takes, and more.
        for count in [5, 40] {
            let (expected, _) = fresh(&mut ours, &text(count, 1));
            let (found, _) = fresh(&mut model, &text(count, 1));
            let error = relative_error(&found, &expected);
            assert!(error < 0.08, "{format}, {count} rows: {error}");
        }
    }
}

/// Rows of 256 are brought into blocks when they are loaded; rows of 48 cannot be, and are in bf16.
#[test]
fn a_plain_file_is_brought_into_blocks_where_rows_are_whole_ones() {
    let relative = |config: ModelConfig, format: NumberFormat, other: NumberFormat| {
        let checkpoint = Checkpoint::random(config, 7).unwrap();
        let (found, _) = fresh(&mut load(&checkpoint, format), &text(30, 1));
        let (expected, _) = fresh(&mut load(&checkpoint, other), &text(30, 1));
        relative_error(&found, &expected)
    };
    let (q8, q4) = (NumberFormat::Q8_0, NumberFormat::Q4_K);
    for (format, most) in [(q8, 0.03), (q4, 0.3)] {
        let error = relative(wide(), format, NumberFormat::F32);
        assert!(error > 0.0 && error < most, "{format}: {error}");
        assert_eq!(
            relative(config(), format, NumberFormat::Bf16),
            0.0,
            "{format}"
        );
    }
}

/// Compares a random model of `config` with this crate's own kernels.
fn is_near_the_cpu(config: ModelConfig, name: &str) {
    let checkpoint = Checkpoint::random(config, 7).unwrap();
    let mut expected = checkpoint.load(WeightFormat::F32).unwrap();
    let (expected, _) = fresh(&mut expected, &text(30, 1));
    let (found, _) = fresh(&mut load(&checkpoint, NumberFormat::F32), &text(30, 1));
    assert_near(&found, &expected, name);
}

/// Fused matrices, and heads that rotate in part.
#[test]
fn phi3_is_near_what_the_cpu_computes() {
    let config = ModelConfig {
        architecture: Architecture::Phi3,
        rope: config().rope.map(|rope| RopeConfig {
            dims: Some(6),
            ..rope
        }),
        ..config()
    };
    is_near_the_cpu(config, "phi3");
}

#[test]
fn glm4_is_near_what_the_cpu_computes() {
    let config = ModelConfig {
        architecture: Architecture::Glm4,
        post_norms: true,
        rope: config().rope.map(|rope| RopeConfig {
            dims: Some(4),
            ..rope
        }),
        ..config()
    };
    is_near_the_cpu(config, "glm4");
}

#[test]
fn olmo2_is_near_what_the_cpu_computes() {
    let config = ModelConfig {
        pre_norms: false,
        post_norms: true,
        qk_norm: true,
        qk_norm_whole: true,
        ..config()
    };
    is_near_the_cpu(config, "olmo2");
}

#[test]
fn granite_is_near_what_the_cpu_computes() {
    let config = ModelConfig {
        attention_scale: 0.2,
        embedding_scale: Some(12.0),
        residual_scale: Some(0.22),
        logit_divisor: Some(0.25),
        ..config()
    };
    is_near_the_cpu(config, "granite");
}
