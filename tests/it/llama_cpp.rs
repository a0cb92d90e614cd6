//! Services whose models llama.cpp computes: their output is their own target's for the seed.

mod families;
pub(crate) mod gguf;
mod own_families;
pub(crate) mod suites;

use candle_core::quantized::gguf_file::Value;
use model::gguf_writer::FileFormat;
use model::source::{EngineKind, ModelSource};
use model::{Checkpoint, ModelConfig, embedded};
use tempfile::TempDir;

use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft, target};
use crate::lossless::{Way, equals_target_only};
use crate::reuse;
use gguf::Gguf;

/// Chains and trees.
const WAYS: [Way; 4] = [
    |requested| requested.draft_len(1),
    |requested| requested.draft_len(6),
    |requested| requested.with("tree", "comb:4"),
    |requested| requested.with("tree", "alternates:2"),
];

#[tokio::test]
async fn coupled_equals_target_only() {
    for format in [FileFormat::F32, FileFormat::Q8_0] {
        let gguf = Gguf::of("target", format);
        let cluster = Cluster::of(draft(), gguf.served()).await;
        equals_target_only(&cluster, 6, &WAYS).await;
    }
}

#[tokio::test]
async fn either_peer_may_be_of_either_engine() {
    let [target_file, draft_file] =
        ["target", "draft"].map(|role| Gguf::of(role, FileFormat::Q8_0));
    let cluster = Cluster::of(draft_file.served(), target()).await;
    equals_target_only(&cluster, 2, &WAYS).await;
    let cluster = Cluster::of(draft_file.served(), target_file.served()).await;
    equals_target_only(&cluster, 2, &WAYS).await;
}

/// What llama.cpp computed of a conversation is not computed again, nor is what two that run begin with.
#[tokio::test]
async fn a_second_turn_finds_the_first() {
    let gguf = Gguf::of("target", FileFormat::F32);
    let cluster = Cluster::of(draft(), gguf.served()).await;
    let ask = async |prompt: &str, reuse: bool| {
        let coordinator = &cluster.coordinator;
        reuse::ask(coordinator, prompt, |it| it.cache_prompt = Some(reuse)).await
    };
    let first = ask(&reuse::prompt(1), true).await;
    assert_eq!(reuse::cached(&first), 0);
    let turn = format!("{}{} More.", reuse::prompt(1), first.text);
    let (alone, second) = (ask(&turn, false).await, ask(&turn, true).await);
    assert_eq!(reuse::cached(&alone), 0);
    assert!(reuse::cached(&second) >= 128, "{}", reuse::cached(&second));
    assert_eq!(second.tokens, alone.tokens);
    let common = reuse::prompt(2);
    let others = (0..4).map(|number| format!("{common}And {number}"));
    let others: Vec<_> = others.collect();
    let asked = others.iter().map(|prompt| ask(prompt, true));
    let answers = futures_util::future::join_all(asked).await;
    let found = answers.iter().filter(|it| reuse::cached(it) >= 128).count();
    assert!(found >= 3, "{found} of 4 found what the first read");
}

/// InternLM2 is a Llama by another name, so what it must answer is known.
#[tokio::test]
async fn a_family_that_our_own_runtime_lacks_is_served() {
    let own = embedded::draft().expect("embedded");
    let config = ModelConfig {
        tie_word_embeddings: false,
        ..own.config().clone()
    };
    let tokenizer = own.tokenizer_json().expect("a tokenizer").to_vec();
    let checkpoint = Checkpoint::random(config, 7).expect("random weights");
    let checkpoint = checkpoint.with_tokenizer(tokenizer);
    let known = Gguf::write(&checkpoint, FileFormat::F32);
    let known = Cluster::of(draft(), known.served()).await;
    let other = Gguf::write(&checkpoint, FileFormat::F32).named("internlm2");
    let mut by_us = other.source();
    by_us.engine = EngineKind::Outrider;
    let refused = by_us.load().expect_err("another family").to_string();
    assert!(
        refused.contains("\"internlm2\" is not supported"),
        "{refused}"
    );
    let inspected = other.source().inspect().expect("in order");
    let served = other.served();
    let outline = inspected.expect("a tokenizer of ours").outline;
    assert_eq!(outline, served.outline);
    let other = Cluster::of(draft(), served).await;
    let requested = request("Once upon a time", 32).ignoring_eos();
    let expected = generate(&known.coordinator, requested.clone()).await;
    let found = generate(&other.coordinator, requested).await;
    assert_eq!((found.tokens.len(), &found.tokens), (32, &expected.tokens));
    equals_target_only(&other, 2, &WAYS).await;
}

#[tokio::test]
async fn parallel_requests_get_what_they_get_alone() {
    let gguf = Gguf::of("target", FileFormat::Q8_0);
    let cluster = Cluster::of(draft(), gguf.served()).await;
    let requested = |seed| request("Once upon a time", 32).seed(seed);
    let mut alone = Vec::new();
    for seed in 0..12 {
        alone.push(generate(&cluster.coordinator, requested(seed)).await.tokens);
    }
    let together = (0..12).map(|seed| generate(&cluster.coordinator, requested(seed)));
    let together = futures_util::future::join_all(together).await;
    let together: Vec<_> = together.into_iter().map(|answer| answer.tokens).collect();
    assert_eq!(together, alone);
}

#[test]
fn the_vocabulary_is_that_of_our_own_runtime_and_the_numerics_are_not() {
    let gguf = Gguf::of("target", FileFormat::Q8_0);
    let (own, by_llama_cpp) = (target(), gguf.served());
    assert_eq!(
        own.outline.vocab_fingerprint,
        by_llama_cpp.outline.vocab_fingerprint
    );
    assert_eq!(own.outline.vocab_size, by_llama_cpp.outline.vocab_size);
    assert_eq!(own.eos_token_ids, by_llama_cpp.eos_token_ids);
    assert_eq!(own.text.special_tokens, by_llama_cpp.text.special_tokens);
    assert_eq!(by_llama_cpp.numerics.dtype, "q8_0");
    let kernels = &by_llama_cpp.numerics.kernels;
    assert_eq!(kernels, "llama.cpp-0.1.160-kv-f32-threads-1");
    let mut in_f16 = gguf.source();
    in_f16.kv_dtype = "f16".to_owned();
    let in_f16 = in_f16.load().expect("a model");
    assert_ne!(in_f16.numerics.weights, by_llama_cpp.numerics.weights);
    assert_eq!(in_f16.weights_fingerprint, by_llama_cpp.weights_fingerprint);
}

/// Where our reader refuses how the file's tokenizer cuts text, llama.cpp's vocabulary is that of our own runtime
/// all the same.
#[tokio::test]
async fn a_tokenizer_that_our_reader_refuses_is_made_of_llama_cpps_vocabulary() {
    let pre = Value::String("superbpe".to_owned());
    let gguf = Gguf::of("target", FileFormat::Q8_0).with("tokenizer.ggml.pre", pre);
    let mut by_us = gguf.source();
    by_us.engine = EngineKind::Outrider;
    let refused = format!("{:?}", by_us.load().expect_err("another tokenizer"));
    assert!(refused.contains("superbpe"), "{refused}");
    assert!(gguf.source().inspect().expect("in order").is_none());
    let (own, served) = (target(), gguf.served());
    assert_eq!(
        served.outline.vocab_fingerprint,
        own.outline.vocab_fingerprint
    );
    assert_eq!(served.outline.vocab_size, own.outline.vocab_size);
    let cluster = Cluster::of(draft(), served).await;
    equals_target_only(&cluster, 1, &WAYS).await;
}

#[test]
fn what_llama_cpp_cannot_serve_is_refused_by_name() {
    type Change = fn(&mut ModelSource);
    let gguf = Gguf::of("draft", FileFormat::Q8_0);
    let broken = TempDir::new().expect("a folder");
    let cut = broken.path().join("cut.gguf");
    let bytes = std::fs::read(&gguf.path).expect("bytes");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    let cases: [(&str, Change); 5] = [
        ("dtype is \"q8_0\"", |source| source.dtype = "q8_0".into()),
        (
            "kv_dtype is \"q8_0\", expected auto, f32 or f16, or q8_0 with llama_cpp.flash_attention",
            |source| {
                source.kv_dtype = "q8_0".into();
            },
        ),
        ("llama_cpp.gpu_layers", |source| {
            source.device = "cuda".into();
        }),
        ("threads is 100000", |source| {
            source.llama_cpp.threads = 100_000;
        }),
        ("reads GGUF files only", |source| {
            source.path = "embedded:draft".into();
        }),
    ];
    for (words, change) in cases {
        let mut source = gguf.source();
        change(&mut source);
        let refused = source.load().expect_err(words).to_string();
        assert!(
            refused.contains(words) && refused.starts_with("engine llama-cpp"),
            "{refused}"
        );
        let before = source.inspect().err().expect(words).to_string();
        assert_eq!(before, refused);
    }
    let mut source = gguf.source();
    source.path = cut.to_str().expect("UTF-8").to_owned();
    let refused = source.load().expect_err("half a file").to_string();
    assert!(
        refused.contains("cut.gguf") && refused.contains("truncated"),
        "{refused}"
    );
    let before = source.inspect().err().expect("half a file").to_string();
    assert_eq!(before, refused);
}
