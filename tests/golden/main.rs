//! Tiny checkpoints against what Hugging Face transformers computes for them in float32, and the
//! promises about bits that speculation relies on.
//!
//! Each folder of `models` holds a checkpoint and `golden.safetensors`: two rows of input ids, the
//! logits and the last hidden states at every position, and each row's greedy continuation.

mod candle;
mod gguf;
mod t5;
mod trees;

use std::{fs, path::PathBuf};

use model::{Checkpoint, Computation, CpuFormat, KvFormat, Model, WeightFormat};
use outrider_tests::contract::{extend, fresh};
use safetensors::SafeTensors;
use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel, Rows, Segment},
};

const MODELS: [&str; 7] = [
    "llama",
    "llama3-rope",
    "mistral-sliding",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
];
/// Largest difference from the reference at any position.
const TOLERANCE: f32 = 1e-4;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/models")
        .join(name)
}

fn load(name: &str, format: impl Into<Computation>) -> Model {
    Checkpoint::open(&folder(name))
        .unwrap()
        .load(format)
        .unwrap()
}

/// What the reference computed for one row of input.
struct Golden {
    input: Vec<TokenId>,
    /// `(positions, vocab)`.
    logits: Vec<f32>,
    /// `(positions, hidden)`.
    hidden: Vec<f32>,
    greedy: Vec<TokenId>,
}

fn golden(name: &str) -> Vec<Golden> {
    let bytes = fs::read(folder(name).join("golden.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let ids = |key: &str| -> Vec<Vec<TokenId>> {
        let tensor = file.tensor(key).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<8>();
        let ids: Vec<_> = numbers
            .iter()
            .map(|n| i64::from_le_bytes(*n) as TokenId)
            .collect();
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

fn assert_near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (found - expected).abs();
        assert!(
            difference <= TOLERANCE,
            "{what}, number {i}: {found} is not {expected}"
        );
    }
}

fn argmax(logits: &[f32]) -> TokenId {
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
    best.unwrap() as TokenId
}

/// ln of the probabilities that `logits` stand for.
fn log_probs(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |m, &l| m.max(l));
    let sum: f64 = logits.iter().map(|l| f64::from(l - largest).exp()).sum();
    let shift = f64::from(largest) + sum.ln();
    logits.iter().map(|&l| f64::from(l) - shift).collect()
}

/// Mean over positions of the divergence in nats of the distributions `q` from the distributions `p`, both as logits.
fn mean_kl(p: &[f32], q: &[f32], vocab: usize) -> f64 {
    let distributions = p.chunks_exact(vocab).zip(q.chunks_exact(vocab));
    let total: f64 = distributions
        .map(|(p, q)| {
            let ps = log_probs(p).into_iter().zip(log_probs(q));
            ps.map(|(p, q)| p.exp() * (p - q)).sum::<f64>()
        })
        .sum();
    total / (p.len() / vocab) as f64
}

/// Calls `check` for every model, format and row of input.
fn for_each(mut check: impl FnMut(&str, &mut Model, &[TokenId])) {
    for name in MODELS {
        for format in WeightFormat::ALL {
            let mut model = load(name, format);
            for row in golden(name) {
                check(&format!("{name} in {format}"), &mut model, &row.input);
            }
        }
    }
}

#[test]
fn logits_and_hidden_states_are_the_references() {
    for name in MODELS {
        let mut model = load(name, WeightFormat::F32);
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
        let mut model = load(name, WeightFormat::F32);
        let vocab = model.shape().vocab_size;
        for row in golden(name) {
            let mut cache = model.new_cache();
            let (mut logits, _) = extend(&mut model, &mut cache, &row.input);
            let mut found = Vec::new();
            while found.len() < row.greedy.len() {
                let token = argmax(&logits[logits.len() - vocab..]);
                found.push(token);
                (logits, _) = extend(&mut model, &mut cache, &[token]);
            }
            assert_eq!(found, row.greedy, "{name}");
        }
    }
}

/// The models' weights are so wide (standard deviation 0.2) that rounding to 8 bits grows from layer
/// to layer; a mistake would grow beyond all bounds. With `--nocapture` the divergences are shown.
#[test]
fn quantised_logits_are_near_the_references() {
    for name in MODELS {
        let mut model = load(name, WeightFormat::Q8_0);
        let vocab = model.shape().vocab_size;
        let mut divergences = Vec::new();
        for row in golden(name) {
            let (logits, _) = fresh(&mut model, &row.input);
            let error: f32 = logits
                .iter()
                .zip(&row.logits)
                .map(|(a, b)| (a - b).powi(2))
                .sum();
            let power: f32 = row.logits.iter().map(|b| b.powi(2)).sum();
            let relative = (error / power).sqrt();
            assert!(relative < 0.15, "{name}: relative error {relative}");
            divergences.push(mean_kl(&row.logits, &logits, vocab));
        }
        let mean = divergences.iter().sum::<f64>() / divergences.len() as f64;
        eprintln!("{name}: Q8_0 diverges from f32 by {mean:.5} nats a position");
        assert!(mean > 0.0 && mean < 0.02, "{name}: {mean} nats");
    }
}

/// Halves have eleven bits where Q8_0 has eight, and only keys and values are in them: what they lose is less
/// than a thousandth of what weights in Q8_0 do; in Q8_0 they lose more, but less than these. With `--nocapture` the
/// divergences are shown.
#[test]
fn keys_and_values_in_fewer_bits_change_little() {
    for name in MODELS {
        let mut exact = load(name, WeightFormat::F32);
        let vocab = exact.shape().vocab_size;
        let mut divergence = |weights, kv| {
            let mut model = load(name, Computation::Cpu(CpuFormat { weights, kv }));
            let rows = golden(name);
            let each = rows.iter().map(|row| {
                let [p, q] = [&mut exact, &mut model].map(|model| fresh(model, &row.input).0);
                mean_kl(&p, &q, vocab)
            });
            each.sum::<f64>() / rows.len() as f64
        };
        let halves = divergence(WeightFormat::F32, KvFormat::F16);
        let blocks = divergence(WeightFormat::F32, KvFormat::Q8_0);
        let quantised = divergence(WeightFormat::Q8_0, KvFormat::F32);
        eprintln!(
            "{name}: keys and values in f16 cost {halves:.1e} nats a position, in Q8_0 {blocks:.1e}, weights in Q8_0 \
             {quantised:.1e}"
        );
        assert!(
            blocks > 10.0 * halves && blocks < quantised,
            "{name}: {blocks} nats"
        );
        assert!(
            halves > 1e-9 && halves < 1e-3 * quantised,
            "{name}: {halves} nats"
        );
        assert!(
            divergence(WeightFormat::F32, KvFormat::F32) == 0.0,
            "{name}"
        );
    }
}

#[test]
fn truncation_and_forward_is_a_fresh_forward() {
    for_each(|what, model, input| {
        let (expected, hidden) = fresh(model, input);
        let (vocab, width) = (model.shape().vocab_size, model.shape().hidden_size);
        for keep in [0, 1, 15, 16, 17, 39] {
            let mut cache = model.new_cache();
            let rejected: Vec<TokenId> = input.iter().map(|token| (token + 7) % 384).collect();
            extend(model, &mut cache, &input[..keep]);
            extend(model, &mut cache, &rejected);
            cache.truncate(keep);
            let found = extend(model, &mut cache, &input[keep..]);
            assert!(found.0 == expected[keep * vocab..], "{what}, {keep} kept");
            assert!(found.1 == hidden[keep * width..], "{what}, {keep} kept");
        }
    });
}

#[test]
fn chunks_are_the_whole() {
    for_each(|what, model, input| {
        let expected = fresh(model, input);
        for size in [1, 2, 5, 16, 39] {
            let mut cache = model.new_cache();
            let (mut logits, mut hidden) = (Vec::new(), Vec::new());
            for chunk in input.chunks(size) {
                let rows = extend(model, &mut cache, chunk);
                logits.extend(rows.0);
                hidden.extend(rows.1);
            }
            assert!((logits, hidden) == expected, "{what}, chunks of {size}");
        }
    });
}

#[test]
fn a_batch_is_each_sequence_alone() {
    for_each(|what, model, input| {
        // (tokens already cached, tokens appended, first of them that is scored)
        let shapes = [(0, 40, 39), (20, 5, 0), (7, 1, 0), (0, 13, 13), (33, 6, 2)];
        let vocab = model.shape().vocab_size;
        let mut caches = Vec::new();
        let mut expected = Vec::new();
        for (held, count, scored_from) in shapes {
            let mut cache = model.new_cache();
            if held > 0 {
                extend(model, &mut cache, &input[..held]);
            }
            let mut alone = model.new_cache();
            if held > 0 {
                extend(model, &mut alone, &input[..held]);
            }
            let (logits, _) = extend(model, &mut alone, &input[held..held + count]);
            expected.extend_from_slice(&logits[scored_from * vocab..]);
            caches.push(cache);
        }
        let mut batch: Vec<_> = caches
            .iter_mut()
            .zip(shapes)
            .map(|(cache, (held, count, scored_from))| Segment {
                cache,
                tokens: &input[held..held + count],
                parents: &[],
                scored_from,
            })
            .collect();
        let mut rows = Rows::default();
        model.forward(&mut batch, &mut rows).unwrap();
        assert!(rows.logits == expected, "{what}");
        for (cache, (held, count, _)) in caches.iter().zip(shapes) {
            assert_eq!(cache.len(), held + count, "{what}");
        }
    });
}
