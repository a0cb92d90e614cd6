//! Services whose models candle-transformers computes: their output is their own target's for the seed. Weights are random,
//! so that two tokens are nearly equally likely at hardly any position.

mod drafters;

use std::fs;
use std::path::Path;

use model::candle::{CandleConfig, random};
use model::source::{EngineKind, ModelSource, ServedModel};
use model::{Model, embedded};
use outrider_tests::candle::{DRAFTERS, FAMILIES, config, mixture_of_60_million};
use speculation::verification::AcceptanceLabel;
use tempfile::TempDir;

use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft, random_draft, target};
use crate::drafter::learned::head_of;
use crate::lossless::{Way, equals_target_only};

/// Rounds, and drafts that come as they come.
const WAYS: [Way; 4] = [
    |requested| requested.draft_len(1),
    |requested| requested.draft_len(5),
    |requested| requested.with("schedule", "stream"),
    |requested| requested.with("drafting", "max-gram"),
];

/// What is set otherwise.
type Change = fn(&mut ModelSource);

/// Length of the vocabulary of the built-in pair.
fn vocab_size() -> usize {
    embedded::draft().expect("embedded").config().vocab_size
}

/// A folder with a model of `family` whose vocabulary is that of the built-in pair.
fn write(folder: &Path, family: &str, seed: u64) {
    write_of(folder, &config(family, vocab_size()), seed);
}

/// A folder with a model of the `config.json` that is given, and the tokenizer of the built-in pair.
fn write_of(folder: &Path, json: &str, seed: u64) {
    let own = embedded::draft().expect("embedded");
    let config = CandleConfig::from_json(json.as_bytes()).expect("a config");
    let file = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("written");
    file("config.json", json.as_bytes());
    file(
        "model.safetensors",
        &random(&config, seed).expect("weights"),
    );
    file("tokenizer.json", own.tokenizer_json().expect("a tokenizer"));
}

fn source(folder: &TempDir) -> ModelSource {
    ModelSource::new(folder.path().to_str().expect("UTF-8"))
}

/// The model of `family` of which `seed` drew the weights.
fn served(family: &str, seed: u64) -> ServedModel<Model> {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), family, seed);
    load(&folder)
}

fn load(folder: &TempDir) -> ServedModel<Model> {
    let mut source = source(folder);
    source.engine = EngineKind::Candle;
    source.load().expect("a model")
}

#[tokio::test]
async fn targets_on_candle_give_their_own_tokens() {
    for family in FAMILIES {
        let cluster = Cluster::of(random_draft(|_| {}), served(family, 7)).await;
        equals_target_only(&cluster, 2, &WAYS).await;
    }
}

#[tokio::test]
async fn targets_of_our_own_runtime_do_with_drafters_on_candle() {
    for family in FAMILIES.into_iter().chain(DRAFTERS) {
        let cluster = Cluster::of(served(family, 7), target()).await;
        equals_target_only(&cluster, 1, &WAYS).await;
    }
}

/// The same model twice, so that drafts are accepted: all of a block, or all but those after a token that the target draws
/// otherwise.
#[tokio::test]
async fn what_is_accepted_is_not_computed_otherwise() {
    for family in FAMILIES {
        let cluster = Cluster::of(served(family, 7), served(family, 7)).await;
        equals_target_only(&cluster, 2, &WAYS).await;
    }
}

/// Large enough for candle to compute in several threads and in blocks.
#[tokio::test]
async fn a_mixture_of_60_million_is_target_and_drafter() {
    let folder = TempDir::new().expect("a folder");
    write_of(folder.path(), &mixture_of_60_million(vocab_size()), 7);
    for (drafter, target) in [(draft(), load(&folder)), (load(&folder), target())] {
        let cluster = Cluster::of(drafter, target).await;
        let requested = request("Once upon a time", 24).temperature(0.0);
        let alone = requested.clone().method("target-only");
        let alone = generate(&cluster.coordinator, alone).await;
        assert_eq!(alone.tokens.len(), 24);
        let by = |schedule: &'static str| {
            let requested = requested.clone().with("schedule", schedule);
            generate(&cluster.coordinator, requested)
        };
        let (rounds, stream) = (by("rounds").await, by("stream").await);
        for answer in [&rounds, &stream] {
            assert_eq!(answer.tokens, alone.tokens);
            assert_eq!(answer.fallbacks(), 0);
        }
        assert!(rounds.statistics().num_draft_tokens > 0);
    }
}

#[tokio::test]
async fn parallel_requests_get_what_they_get_alone() {
    let cluster = Cluster::of(draft(), served("qwen3_moe", 7)).await;
    let requested = |seed| request("Once upon a time", 24).seed(seed);
    let mut alone = Vec::new();
    for seed in 0..6 {
        alone.push(generate(&cluster.coordinator, requested(seed)).await.tokens);
    }
    let together = (0..6).map(|seed| generate(&cluster.coordinator, requested(seed)));
    let together = futures_util::future::join_all(together).await;
    let together: Vec<_> = together.into_iter().map(|answer| answer.tokens).collect();
    assert_eq!(together, alone);
}

/// The hidden states that heads read are there.
#[tokio::test]
async fn an_acceptance_head_stops_drafts_of_a_drafter_on_candle() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "qwen3_moe", 7);
    let source = source(&folder);
    let head = head_of(&source.load().expect("a model"), AcceptanceLabel::Coupled);
    let file = folder.path().join("head-coupled.safetensors");
    head.save(&file).expect("written");
    let served = source.load().expect("a model with a head");
    assert_eq!(served.heads.len(), 1);
    source.inspect().expect("in order");
    let cluster = Cluster::of(served, target()).await;
    let learned: Way = |requested| requested.with("draft_len", "specdec++:0.5:0");
    equals_target_only(&cluster, 1, &[learned]).await;

    // One that was trained for other weights is refused.
    write(folder.path(), "qwen3_moe", 8);
    let refused = source.load().expect_err("another model").to_string();
    assert!(refused.contains("head-coupled.safetensors"), "{refused}");
}

#[test]
fn who_computes_a_model_follows_from_its_family() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "qwen3_moe", 1);
    let source = source(&folder);
    let served = source.load().expect("a model");
    assert!(matches!(served.model, Model::Candle(_)));
    assert_eq!(served.numerics.dtype, "f32");
    assert_eq!(served.eos_token_ids, [2]);
    let inspected = source.inspect().expect("in order").expect("here");
    assert_eq!(
        (inspected.engine, &inspected.outline),
        (EngineKind::Candle, &served.outline)
    );
    assert!(matches!(target().model, Model::Decoder(_)));

    let by = |engine, change: Change| {
        let mut source = ModelSource {
            engine,
            ..source.clone()
        };
        change(&mut source);
        let refused = source.load().expect_err("refused").to_string();
        let before = source.inspect().err().expect("refused").to_string();
        assert_eq!(before, refused);
        refused
    };
    let unchanged: Change = |_| {};
    let words = by(EngineKind::Outrider, unchanged);
    for part in [
        "\"qwen3_moe\" is not supported: llama",
        "outrider models families",
    ] {
        assert!(words.contains(part), "{words}");
    }
    let cases: [(&str, Change); 4] = [
        ("Hugging Face layout only", |source| {
            source.path = "embedded:draft".into();
        }),
        (
            "dtype is \"q8_0\", expected auto, f32, bf16 or f16",
            |source| source.dtype = "q8_0".into(),
        ),
        ("kv_dtype is \"f16\"", |source| {
            source.kv_dtype = "f16".into();
        }),
        ("device: no device \"tpu\"", |source| {
            source.device = "tpu".into();
        }),
    ];
    for (part, change) in cases {
        let words = by(EngineKind::Candle, change);
        assert!(
            words.contains(part) && words.starts_with("engine candle"),
            "{words}"
        );
    }
    let words = by(EngineKind::Candle, |source| {
        source.path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/models/llama").to_owned();
    });
    let expected =
        "model type \"llama\" is not supported: qwen3_moe, glm4, smollm3, phi, falcon are";
    assert!(words.contains(expected), "{words}");
}

/// A family that resembles a known one is computed by no engine, and the error names the command that lists families.
#[test]
fn a_family_that_no_engine_knows_is_refused() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "qwen3_moe", 1);
    let file = folder.path().join("config.json");
    let known = fs::read_to_string(&file).expect("read");
    fs::write(&file, known.replace("qwen3_moe", "qwen2_moe")).expect("written");
    let refused = source(&folder)
        .load()
        .expect_err("another family")
        .to_string();
    for part in ["\"qwen2_moe\" is not supported", "outrider models families"] {
        assert!(refused.contains(part), "{refused}");
    }
}

/// Two formats of one model are the same weights and other numerics; what is rounded is still a model.
#[test]
fn numerics_tell_formats_apart_and_weights_do_not() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "smollm3", 1);
    let [exact, rounded] = ["auto", "bf16"].map(|dtype| {
        let mut source = source(&folder);
        source.engine = EngineKind::Candle;
        source.dtype = dtype.to_owned();
        source.load().expect("a model")
    });
    assert_eq!(exact.weights_fingerprint, rounded.weights_fingerprint);
    assert_ne!(exact.numerics.weights, rounded.numerics.weights);
    assert_eq!(rounded.numerics.dtype, "bf16");
    let other = served("smollm3", 2);
    assert_ne!(exact.weights_fingerprint, other.weights_fingerprint);
}
