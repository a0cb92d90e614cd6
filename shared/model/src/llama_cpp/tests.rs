//! llama.cpp computes what it must, within rounding, and refuses what it cannot before it is sent.

use std::{fs::File, ops::ControlFlow, path::PathBuf};

use speculation::ports::KvCache;
use tempfile::TempDir;

use super::*;
use crate::{
    checkpoint::Checkpoint,
    config::{Activation, Architecture, ModelConfig, RopeConfig},
    embedded,
    gguf_writer::{self, FileFormat},
    rope::RopeScaling,
    tests::{TREE, extend, forward, fresh, holds, path, text},
};

/// One thread: others may be on the cores of a machine that runs tests, and llama.cpp's wait without sleeping.
fn settings() -> Settings {
    Settings {
        threads: 1,
        ..Settings::default()
    }
}

/// `checkpoint` as a GGUF file of `format`, in a folder that goes with it.
fn written(checkpoint: &Checkpoint, format: FileFormat) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    let mut file = File::create(&path).unwrap();
    let go_on = &mut |_: crate::progress::WorkProgress<'_>| ControlFlow::Continue(());
    gguf_writer::write(checkpoint, "test", format, &mut file, go_on).unwrap();
    (folder, path)
}

/// The file at `path` computed by llama.cpp with room for `cells` tokens.
fn open(path: &Path, cells: usize) -> LlamaModel {
    let mut model = LlamaModel::load(path, &settings(), KvType::F32).unwrap();
    model.reserve(cells).unwrap();
    model
}

/// `checkpoint` in `format`, computed by llama.cpp.
fn load(checkpoint: &Checkpoint, format: FileFormat, cells: usize) -> LlamaModel {
    let (_folder, path) = written(checkpoint, format);
    open(&path, cells)
}

fn draft() -> Checkpoint {
    embedded::draft().unwrap()
}

/// A random model of the built-in vocabulary with windows in every other layer.
fn gemma() -> Checkpoint {
    let own = draft();
    let config = ModelConfig {
        architecture: Architecture::Gemma3,
        norm_plus_one: true,
        post_norms: true,
        qk_norm: true,
        activation: Activation::GeluTanh,
        embedding_scale: Some((own.config().hidden_size as f32).sqrt()),
        window: Some(32),
        windowed: vec![true, true, false],
        window_rope: Some(RopeConfig {
            theta: 10_000.0,
            scaling: RopeScaling::Default,
            dims: None,
        }),
        ..own.config().clone()
    };
    let tokenizer = own.tokenizer_json().unwrap().to_vec();
    Checkpoint::random(config, 7)
        .unwrap()
        .with_tokenizer(tokenizer)
}

/// Largest difference between two ways to the same logit where weights are f32.
fn near(found: &[f32], expected: &[f32], what: &str) {
    within(found, expected, 1e-3, what);
}

/// The same where weights are Q8_0: activations are rounded at each product, which magnifies some differences.
fn near_in_q8_0(found: &[f32], expected: &[f32], what: &str) {
    within(found, expected, 0.2, what);
}

fn within(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let pairs = found.iter().zip(expected);
    let differences = pairs.map(|(found, expected)| (found - expected).abs());
    let largest = differences.fold(0.0, f32::max);
    assert!(largest <= tolerance, "{what}: {largest}");
}

#[test]
fn the_contract_holds_within_rounding() {
    holds(
        &mut load(&draft(), FileFormat::F32, 2048),
        near,
        "draft in f32",
    );
    holds(
        &mut load(&draft(), FileFormat::Q8_0, 2048),
        near_in_q8_0,
        "draft in q8_0",
    );
    holds(
        &mut load(&gemma(), FileFormat::F32, 2048),
        near,
        "gemma3 in f32",
    );
}

/// KL from our own runtime's distribution to llama.cpp's, on the same file and in nats; the mean over all positions
/// of a text.
#[test]
fn distributions_are_those_of_our_own_runtime() {
    let checkpoint = embedded::target().unwrap();
    let tokens = text(400, 3);
    for (format, own, bound) in [
        (FileFormat::F32, crate::WeightFormat::F32, 1e-6),
        (FileFormat::Q8_0, crate::WeightFormat::Q8_0, 1e-3),
    ] {
        let (_folder, path) = written(&checkpoint, format);
        let read = Checkpoint::open(&path).unwrap();
        let (expected, _) = fresh(&mut read.load(own).unwrap(), &tokens);
        let mut model = open(&path, 512);
        let (found, _) = fresh(&mut model, &tokens);
        let vocab_size = model.shape().vocab_size;
        let rows = expected.chunks(vocab_size).zip(found.chunks(vocab_size));
        let sum: f64 = rows
            .map(|(expected, found)| divergence(expected, found))
            .sum();
        let mean = sum / tokens.len() as f64;
        println!("{own}: mean KL {mean:.2e}");
        assert!(mean <= bound, "{own}: mean KL {mean:.2e}");
    }
}

fn divergence(p: &[f32], q: &[f32]) -> f64 {
    let normaliser = |row: &[f32]| {
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        sum.ln()
    };
    let (of_p, of_q) = (normaliser(p), normaliser(q));
    let pairs = p
        .iter()
        .zip(q)
        .map(|(&p, &q)| (f64::from(p) - of_p, f64::from(q) - of_q));
    pairs.map(|(p, q)| p.exp() * (p - q)).sum()
}

/// What does not fit is said before llama.cpp is asked, and leaves the caches as they were.
#[test]
fn cells_and_sequences_run_out_by_name() {
    let mut model = load(&draft(), FileFormat::Q8_0, 256);
    let mut cache = model.new_cache();
    extend(&mut model, &mut cache, &text(200, 1));
    let refused = forward(&mut model, &mut cache, &text(60, 2), &[], 0).unwrap_err();
    assert!(LlamaModel::is_out_of_memory(&refused), "{refused}");
    assert_eq!(
        (cache.len(), model.memory().unwrap().used_pages),
        (200, 200)
    );
    extend(&mut model, &mut cache, &text(56, 2));
    cache.truncate(0);

    // One a token, which is as few as there are cells.
    let mut caches: Vec<_> = (0..SEQUENCES - 1).map(|_| model.new_cache()).collect();
    for cache in &mut caches {
        forward(&mut model, cache, &[1], &[], 1).unwrap();
    }
    let mut last = model.new_cache();
    let refused = forward(&mut model, &mut last, &[1], &[None], 0).unwrap_err();
    assert!(LlamaModel::is_out_of_memory(&refused), "{refused}");
    assert!(refused.to_string().contains("256 sequences"), "{refused}");
    assert!(last.is_empty());
    forward(&mut model, &mut last, &[1], &[], 0).unwrap();
    assert!(last.share(1).is_none());
    drop(caches);
    assert_eq!(last.share(1).map(|shared| shared.len()), Some(1));
}

/// llama.cpp itself has no context of fewer tokens than sequences.
#[test]
fn memory_may_hold_fewer_tokens_than_there_are_sequences() {
    let mut model = load(&draft(), FileFormat::F32, 48);
    let mut cache = model.new_cache();
    extend(&mut model, &mut cache, &text(48, 1));
    let refused = forward(&mut model, &mut cache, &[1], &[], 0).unwrap_err();
    assert!(LlamaModel::is_out_of_memory(&refused), "{refused}");
    assert_eq!(cache.len(), 48);
}

/// A batch of more leaves than there are sequences: the first trees are let go, and every row is right.
#[test]
fn a_batch_of_many_trees_gives_all_rows() {
    let mut model = load(&draft(), FileFormat::F32, 2048);
    let tokens = text(8 + TREE.len(), 4);
    let (expected, _) = fresh(&mut model, &path(&tokens, 4));
    let vocab_size = model.shape().vocab_size;
    // Each takes a sequence and three leaves.
    let mut caches: Vec<_> = (0..80).map(|_| model.new_cache()).collect();
    let mut batch: Vec<_> = caches
        .iter_mut()
        .map(|cache| Segment {
            cache,
            tokens: &tokens,
            parents: &TREE,
            scored_from: 12,
        })
        .collect();
    let mut rows = Rows::default();
    model.forward(&mut batch, &mut rows).unwrap();
    assert_eq!(rows.logits.len(), 80 * 2 * vocab_size);
    for cache in 0..80 {
        let what = format!("node 4 of tree {cache}");
        near(rows.row(2 * cache), &expected[10 * vocab_size..], &what);
    }
    let kept = caches.iter_mut().map(|cache| {
        assert_eq!(cache.len(), tokens.len());
        cache.keep(8, &[1, 2, 4], &[]);
        cache.len()
    });
    let kept: Vec<usize> = kept.collect();
    assert_eq!((kept[0], kept[79]), (8, 11));
    let (found, _) = extend(&mut model, &mut caches[79], &[5]);
    let whole = [&path(&tokens, 4)[..], &[5]].concat();
    near(
        &found,
        &fresh(&mut model, &whole).0[11 * vocab_size..],
        "after a kept path",
    );
    drop(caches);
    assert_eq!(model.memory().unwrap().used_pages, 0);
}

#[test]
fn wrong_settings_are_refused_by_name() {
    let refused = Settings {
        threads: 100_000,
        ..Settings::default()
    };
    let path = Path::new("no.gguf");
    let refused = LlamaModel::load(path, &refused, KvType::F32)
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("llama_cpp.threads is 100000, expected at most"),
        "{refused}"
    );
}
