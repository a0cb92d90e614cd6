//! Services whose models llama.cpp computes: their output is their own target's for the seed.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content, Value};
use model::gguf::{self, FileFormat, WriteProgress};
use model::source::{EngineKind, ModelSource, ServedModel};
use model::{Checkpoint, Model, ModelConfig, embedded};
use speculation::drafting::TreeShape;
use tempfile::TempDir;
use wire::drafting::shape_to_wire;

use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft, target};
use crate::lossless::{Way, equals_target_only};

/// Chains and trees.
const WAYS: [Way; 4] = [
    |requested| requested.draft_len(1),
    |requested| requested.draft_len(6),
    |mut requested| {
        requested.tree = shape_to_wire(TreeShape::Comb(4));
        requested
    },
    |mut requested| {
        requested.tree = shape_to_wire(TreeShape::Alternates(2));
        requested
    },
];

/// A GGUF file in a folder that goes with it.
struct Gguf {
    folder: TempDir,
    path: PathBuf,
}

impl Gguf {
    /// An embedded model.
    fn of(role: &str, format: FileFormat) -> Self {
        Self::write(&embedded::model(role).expect("embedded"), format)
    }

    fn write(checkpoint: &Checkpoint, format: FileFormat) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("model.gguf");
        let mut file = File::create(&path).expect("a file");
        let go_on = &mut |_: WriteProgress<'_>| ControlFlow::Continue(());
        gguf::write(checkpoint, "model", format, &mut file, go_on).expect("written");
        Self { folder, path }
    }

    /// The same tensors and constants as of another architecture.
    fn named(mut self, architecture: &str) -> Self {
        let mut file = File::open(&self.path).expect("a file");
        let content = Content::read(&mut file).expect("GGUF");
        let renamed = |key: &str| match key.strip_prefix("llama.") {
            Some(name) => format!("{architecture}.{name}"),
            None => key.to_owned(),
        };
        let metadata = content.metadata.iter();
        let mut metadata: BTreeMap<String, Value> = metadata
            .map(|(key, value)| (renamed(key), value.clone()))
            .collect();
        let name = Value::String(architecture.to_owned());
        metadata.insert("general.architecture".to_owned(), name);
        let mut tensors = Vec::new();
        for name in content.tensor_infos.keys() {
            let tensor = content.tensor(&mut file, name, &Device::Cpu);
            tensors.push((name.as_str(), tensor.expect("a tensor")));
        }
        self.path = self.folder.path().join("renamed.gguf");
        let metadata: Vec<_> = metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        let tensors: Vec<_> = tensors
            .iter()
            .map(|(name, tensor)| (*name, tensor))
            .collect();
        let mut file = File::create(&self.path).expect("a file");
        gguf_file::write(&mut file, &metadata, &tensors).expect("written");
        self
    }

    /// Computed by llama.cpp on one thread: this process computes on the other cores.
    fn source(&self) -> ModelSource {
        let mut source = ModelSource::new(self.path.to_str().expect("UTF-8"));
        source.engine = EngineKind::LlamaCpp;
        source.llama_cpp.threads = 1;
        source
    }

    fn served(&self) -> ServedModel<Model> {
        self.source().load().expect("a model")
    }
}

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
    let other = Cluster::of(draft(), other.served()).await;
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
    assert_eq!(own.vocab_fingerprint, by_llama_cpp.vocab_fingerprint);
    assert_eq!(own.vocab_size, by_llama_cpp.vocab_size);
    assert_eq!(own.eos_token_ids, by_llama_cpp.eos_token_ids);
    assert_eq!(own.special_tokens, by_llama_cpp.special_tokens);
    assert_eq!(by_llama_cpp.numerics.dtype, "q8_0");
    let kernels = &by_llama_cpp.numerics.kernels;
    assert_eq!(kernels, "llama.cpp-0.1.160-kv-f32-threads-1");
    let mut in_f16 = gguf.source();
    in_f16.kv_dtype = "f16".to_owned();
    let in_f16 = in_f16.load().expect("a model");
    assert_ne!(in_f16.numerics.weights, by_llama_cpp.numerics.weights);
    assert_eq!(in_f16.weights_fingerprint, by_llama_cpp.weights_fingerprint);
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
            "kv_dtype is \"q8_0\", expected auto, f32 or f16",
            |source| {
                source.kv_dtype = "q8_0".into();
            },
        ),
        ("llama_cpp.gpu_layers", |source| {
            source.device = "cuda".into()
        }),
        ("threads is 100000", |source| {
            source.llama_cpp.threads = 100_000;
        }),
        ("reads GGUF files only", |source| {
            source.path = "embedded:draft".into()
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
    }
    let mut source = gguf.source();
    source.path = cut.to_str().expect("UTF-8").to_owned();
    let refused = source.load().expect_err("half a file").to_string();
    assert!(
        refused.contains("cut.gguf") && refused.contains("truncated"),
        "{refused}"
    );
}
