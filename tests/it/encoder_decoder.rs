//! Encoder-decoder models over the three services: the prompt goes to the encoder, positions count the
//! decoder's output.

use std::path::PathBuf;

use model::bigram::BigramFile;
use model::source::{ModelSource, ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat};
use serde_json::{Value, json};
use speculation::max_gram::Bigram;
use speculation::ports::{LanguageModel, Rows, Segment};
use wire::v1::generate_request::Prompt;
use wire::v1::{GenerateRequest, Origin, TokenIds};

use crate::client::{Answer, With, generate, request, try_generate};
use crate::cluster::{Service, config, coordinator, drafter, drafter_with, eventually, verifier};

/// Ids of the golden models' vocabulary.
const VOCAB: u32 = 384;
/// The models' end token.
const EOS: u32 = 2;

/// A tokenizer of bytes for the golden models, which have none: special tokens, the 256 bytes, and spare ids.
/// It ends every text with the end token, as T5's own does.
fn tokenizer() -> Vec<u8> {
    // The characters that stand for bytes in a byte-level tokenizer's vocabulary.
    let printable = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let shifted = (0..256).filter(|byte| !printable(byte)).zip(256..);
    let named = (0..256).filter(printable).map(|byte| (byte, byte));
    let mut characters: Vec<(u32, u32)> = named.chain(shifted).collect();
    characters.sort_unstable();
    let specials = ["<pad>", "<unk>", "</s>"].map(str::to_owned);
    let bytes = characters
        .into_iter()
        .map(|(_, character)| char::from_u32(character).expect("a character").to_string());
    let spare = (0..VOCAB - 259).map(|spare| format!("<extra_{spare}>"));
    let tokens = specials.into_iter().chain(bytes).chain(spare).zip(0..);
    let vocab: serde_json::Map<String, Value> =
        tokens.map(|(token, id)| (token, json!(id))).collect();
    let special = |id: u32, content: &str| {
        json!({
            "id": id, "content": content, "special": true, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false,
        })
    };
    let bytes_to_text = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false,
    });
    let json = json!({
        "version": "1.0",
        "added_tokens": [special(0, "<pad>"), special(1, "<unk>"), special(2, "</s>")],
        "pre_tokenizer": bytes_to_text,
        "decoder": bytes_to_text,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}},
        },
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    json.to_string().into_bytes()
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/models")
        .join(name)
}

/// A golden T5.
fn t5(name: &str, format: WeightFormat) -> ServedModel<Model> {
    let checkpoint = Checkpoint::open(&folder(name)).expect("a checkpoint");
    let checkpoint = checkpoint.with_tokenizer(tokenizer());
    serve(&checkpoint, format, format!("{name}-{format}"), name).expect("a model")
}

fn target() -> ServedModel<Model> {
    t5("t5-original", WeightFormat::F32)
}

/// A model of the same vocabulary without an encoder.
fn decoder_only() -> ServedModel<Model> {
    let config = ModelConfig {
        vocab_size: VOCAB as usize,
        ..ModelConfig::llama()
    };
    let random = Checkpoint::random(config, 3).expect("random weights");
    let random = random.with_tokenizer(tokenizer());
    serve(&random, WeightFormat::F32, "plain".to_owned(), "plain").expect("a model")
}

/// A verifier of the target, a drafter of `draft`, and a coordinator.
async fn cluster(draft: ServedModel<Model>) -> (Service, [Service; 2]) {
    let (drafter, _) = drafter(draft).await;
    of(drafter).await
}

/// A verifier of the target and a coordinator beside a drafter.
async fn of(drafter: Service) -> (Service, [Service; 2]) {
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    (coordinator, [drafter, verifier])
}

const PROMPTS: [&str; 4] = [
    "translate English to German: The house is wonderful.",
    "a",
    "summarize: one two three one two three one two three one two",
    "Ünïcödé, ñ und ß.",
];

/// What the target writes, by the definition: a forward of everything for each token.
fn greedy(prompt: &[u32], max_tokens: usize) -> Vec<u32> {
    let mut model = target().model;
    let mut tokens = vec![0];
    while tokens.len() <= max_tokens && tokens.last() != Some(&EOS) {
        let mut cache = model.new_cache();
        model.encode(&mut cache, prompt).expect("a source");
        let mut rows = Rows::default();
        let segment = Segment {
            cache: &mut cache,
            tokens: &tokens,
            parents: &[],
            scored_from: tokens.len() - 1,
        };
        model.forward(&mut [segment], &mut rows).expect("a row");
        let best =
            (0..rows.logits.len()).max_by(|&a, &b| rows.logits[a].total_cmp(&rows.logits[b]));
        tokens.push(best.expect("a token") as u32);
    }
    tokens.split_off(1)
}

fn of_tokens(ids: &[u32], max_tokens: u32) -> GenerateRequest {
    GenerateRequest {
        prompt: Some(Prompt::TokenIds(TokenIds { ids: ids.to_vec() })),
        ..request("", max_tokens)
    }
}

#[tokio::test]
async fn the_target_alone_writes_what_its_definition_says() {
    let (coordinator, _peers) = cluster(target()).await;
    for prompt in [&[14, 111, 143, 177][..], &[2], &[300; 70]] {
        let requested = of_tokens(prompt, 24).temperature(0.0);
        let answer = generate(&coordinator, requested.method("target-only")).await;
        assert_eq!(answer.tokens, greedy(prompt, 24), "{prompt:?}");
        assert_eq!(answer.started.prompt_tokens as usize, prompt.len());
    }
    // The prompt as text ends with the end token, and the output is no continuation of it.
    let requested = request("ab", 24).temperature(0.0).method("target-only");
    let answer = generate(&coordinator, requested).await;
    assert_eq!(answer.tokens, greedy(&[100, 101, 2], 24));
}

/// Every prompt and temperature against the target alone; how many draft tokens were accepted.
async fn equals_target_only(
    coordinator: &Service,
    what: &str,
    change: impl Fn(GenerateRequest) -> GenerateRequest,
) -> u32 {
    let (mut accepted, mut drafted) = (0, 0);
    for (seed, prompt) in PROMPTS.into_iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = request(prompt, 40)
                .temperature(temperature)
                .seed(seed as u64)
                .ignoring_eos();
            let alone = generate(coordinator, requested.clone().method("target-only")).await;
            let coupled = generate(coordinator, change(requested)).await;
            let what = format!("{what}, T={temperature} {prompt:?}");
            assert_eq!(coupled.tokens, alone.tokens, "{what}");
            assert_eq!(coupled.tokens.len(), 40, "{what}");
            assert_eq!(coupled.text, alone.text, "{what}");
            assert!(coupled.finished.exact && coupled.fallbacks() == 0, "{what}");
            let statistics = coupled.statistics();
            accepted += statistics.num_accepted_draft_tokens;
            drafted += statistics.num_draft_tokens;
        }
    }
    assert!(drafted > 0, "{what}: nothing was drafted");
    accepted
}

#[tokio::test]
async fn coupled_equals_target_only() {
    // Nearly the target itself.
    let (coordinator, _peers) = cluster(t5("t5-original", WeightFormat::Q8_0)).await;
    for draft_len in [1, 4, 8] {
        let what = format!("K={draft_len}");
        let change = |requested: GenerateRequest| requested.draft_len(draft_len);
        let accepted = equals_target_only(&coordinator, &what, change).await;
        assert!(accepted > 50, "{what}: {accepted} accepted");
    }
    let comb = |requested: GenerateRequest| requested.draft_len(4).with("tree", "comb:3");
    let accepted = equals_target_only(&coordinator, "trees", comb).await;
    assert!(accepted > 50, "trees: {accepted} accepted");
    // Nothing like it.
    let (coordinator, _peers) = cluster(t5("t5-v1_1", WeightFormat::Q8_0)).await;
    equals_target_only(&coordinator, "a stranger", |requested| requested).await;
}

/// A table for Max-Gram in a file that lives as long as the folder.
fn bigram(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("bigram.safetensors");
    let served = target();
    let file = BigramFile {
        table: Bigram::new((0..VOCAB).map(|id| (id + 1) % VOCAB).collect()).expect("a table"),
        vocab_fingerprint: served.outline.vocab_fingerprint,
        eos_token_ids: vec![EOS],
    };
    file.save(&path).expect("written");
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn every_way_of_drafting_equals_target_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = bigram(&folder);
    let (drafter, _) = drafter_with(t5("t5-original", WeightFormat::Q8_0), |config| {
        config.bigram = table;
    })
    .await;
    let (coordinator, _peers) = of(drafter).await;
    for drafting in ["max-gram", "cascade"] {
        let change = |requested: GenerateRequest| requested.draft_len(6).with("drafting", drafting);
        let what = format!("{drafting:?}");
        let accepted = equals_target_only(&coordinator, &what, change).await;
        assert!(accepted > 0, "{what}: {accepted} accepted");
    }
}

#[tokio::test]
async fn every_method_runs_and_repeats_itself() {
    let (coordinator, _peers) = cluster(t5("t5-original", WeightFormat::Q8_0)).await;
    for method in speculation::methods::METHODS {
        for temperature in [0.0, 1.0] {
            let requested = request(PROMPTS[0], 24)
                .method(method.name)
                .temperature(temperature)
                .ignoring_eos();
            let answer = generate(&coordinator, requested.clone()).await;
            assert_eq!(answer.tokens.len(), 24, "{}", method.name);
            assert_eq!(answer.finished.effective_method, method.name);
            let again = generate(&coordinator, requested).await;
            assert_eq!(again.tokens, answer.tokens, "{}", method.name);
        }
    }
}

#[tokio::test]
async fn a_draft_model_without_an_encoder_is_refused() {
    let (coordinator, _peers) = cluster(decoder_only()).await;
    let expected = "t5-original-f32 is an encoder-decoder model and plain is not";
    coordinator.meets_misfit().await;
    let answer = generate(&coordinator, request("x", 8)).await;
    assert_eq!(answer.finished.effective_method, "target-only");
    let draft_only = try_generate(&coordinator, request("x", 8).method("draft-only")).await;
    let refused = draft_only.expect_err("refused");
    assert!(refused.message().contains(expected), "{refused:?}");
}

#[tokio::test]
async fn a_cascade_of_both_kinds_is_refused() {
    // A folder with a checkpoint and the tokenizer it lacks.
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["config.json", "model.safetensors"] {
        let from = self::folder("t5-v1_1").join(file);
        std::fs::copy(from, folder.path().join(file)).expect("copied");
    }
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer()).expect("written");
    let mut config = ::drafter::DrafterConfig::default();
    config.cascade.models.push(ModelSource {
        path: folder.path().to_string_lossy().into_owned(),
        name: "small".to_owned(),
        ..ModelSource::embedded("draft")
    });
    let refused = ::drafter::Loaded::beside(decoder_only(), &config).expect_err("refused");
    let message = refused.to_string();
    assert!(
        message.starts_with("drafter.cascade.models[0]: ") && message.contains("encoder-decoder"),
        "{message}"
    );
    assert!(::drafter::Loaded::beside(target(), &config).is_ok());
}

#[tokio::test]
async fn prompt_and_output_have_a_limit_each() {
    let golden = Checkpoint::open(&folder("t5-original")).expect("a checkpoint");
    let config = ModelConfig {
        context_len: 64,
        ..golden.config().clone()
    };
    let short = Checkpoint::random(config, 5).expect("random weights");
    let short = short.with_tokenizer(tokenizer());
    let short = || serve(&short, WeightFormat::F32, "short".to_owned(), "short").expect("a model");
    let (drafter, _) = drafter(short()).await;
    let (verifier, _) = verifier(short()).await;
    let coordinator =
        coordinator(crate::cluster::config(&[drafter.url()], &[verifier.url()])).await;
    let refused = async |requested: GenerateRequest| {
        let refused = try_generate(&coordinator, requested).await;
        refused.expect_err("refused").message().to_owned()
    };
    // The encoder takes as much, and of the decoder's places one is the start token's.
    let message = refused(of_tokens(&[5; 65], 8)).await;
    assert!(
        message.contains("maximum context length is 64 tokens; 65 tokens are in the prompt"),
        "{message}"
    );
    let message = refused(of_tokens(&[5], 64)).await;
    assert!(message.contains("expected 1 to 63"), "{message}");
    let whole = of_tokens(&[5; 64], 63).ignoring_eos().draft_len(8);
    let alone = generate(&coordinator, whole.clone().method("target-only")).await;
    let coupled = generate(&coordinator, whole).await;
    assert_eq!(coupled.tokens.len(), 63);
    assert_eq!(coupled.tokens, alone.tokens);
    // The drafter too drafts to the end: its twin's tokens are all accepted.
    assert!(coupled.finished.exact && coupled.fallbacks() == 0);
    let targets = |answer: &Answer| {
        let is_target = |origin: &&Origin| **origin == Origin::Target;
        answer.origins.iter().filter(is_target).count()
    };
    assert_eq!(targets(&alone), 63);
    assert!(
        targets(&coupled) < 10,
        "{} of the target",
        targets(&coupled)
    );
}

#[tokio::test]
async fn requests_beside_one_another_keep_their_sources() {
    let (drafter, draft_monitor) = drafter(t5("t5-original", WeightFormat::Q8_0)).await;
    let (verifier, target_monitor) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let requested = |prompt: &str| request(prompt, 40).ignoring_eos();
    let mut alone: Vec<Answer> = Vec::new();
    for prompt in PROMPTS {
        alone.push(generate(&coordinator, requested(prompt)).await);
    }
    let together = PROMPTS.map(|prompt| generate(&coordinator, requested(prompt)));
    let together = futures_util::future::join_all(together).await;
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(alone.tokens, together.tokens);
    }
    assert_ne!(alone[0].tokens, alone[1].tokens, "the prompt is read");
    eventually("nothing is left of the requests", || {
        target_monitor.engine().sequences == 0 && draft_monitor.engine().sequences == 0
    })
    .await;
}
