use speculation::{ports::KvCache, simd::Level};

use super::*;
use crate::{
    cache::KvFormat,
    checkpoint::Checkpoint,
    computation::Computation,
    config::{Activation, Architecture, EncoderConfig},
    cpu::Threads,
    linear::WeightFormat,
    runtime::Model,
    tests::{self as trials, Scored, text},
};

/// A small model of sizes that fit no vector, with more decoder than encoder layers.
pub(crate) fn config() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::T5,
        vocab_size: 101,
        hidden_size: 40,
        intermediate_size: 72,
        layers: 3,
        heads: 3,
        kv_heads: 3,
        head_dim: 10,
        activation: Activation::GeluTanh,
        attention_scale: 1.0,
        rope: None,
        context_len: 96,
        tie_word_embeddings: false,
        encoder: Some(EncoderConfig {
            layers: 2,
            relative_buckets: 8,
            relative_max_distance: 20,
            decoder_start_token_id: 0,
        }),
        ..ModelConfig::llama()
    }
}

fn load(config: ModelConfig, format: impl Into<Computation>) -> T5 {
    let checkpoint = Checkpoint::random(config, 7).unwrap();
    let Model::T5(model) = checkpoint.load(format).unwrap() else {
        panic!("the config has an encoder");
    };
    model
}

/// Logits and hidden states of all `tokens`, written from `source`.
fn fresh(model: &mut T5, source: &[TokenId], tokens: &[TokenId]) -> Scored {
    let mut cache = model.new_cache();
    model.encode(&mut cache, source).unwrap();
    extend(model, &mut cache, tokens).unwrap()
}

fn extend(
    model: &mut T5,
    cache: &mut CpuCache,
    tokens: &[TokenId],
) -> Result<Scored, ForwardError> {
    trials::forward(model, cache, tokens, &[], 0)
}

#[test]
fn copies_of_a_sequence_share_its_source() {
    let mut model = load(config(), WeightFormat::F32);
    let (source, tokens) = (text(20, 1), text(9, 2));
    let (expected, _) = fresh(&mut model, &source, &tokens);
    let mut one = model.new_cache();
    model.encode(&mut one, &source).unwrap();
    let mut other = one.clone();
    model.encode(&mut one, &text(7, 5)).unwrap();
    assert_ne!(extend(&mut model, &mut one, &tokens).unwrap().0, expected);
    assert_eq!(extend(&mut model, &mut other, &tokens).unwrap().0, expected);
}

#[test]
fn refusals_leave_the_sequence_alone() {
    let mut model = load(config(), WeightFormat::Q8_0);
    let mut cache = model.new_cache();
    let refused = extend(&mut model, &mut cache, &[1]);
    assert_eq!(refused, Err(ForwardError::NoSource));
    model.encode(&mut cache, &text(9, 1)).unwrap();
    let expected = extend(&mut model, &mut cache, &text(8, 2)).unwrap();
    let unknown = ForwardError::TokenOutOfRange {
        token: 101,
        vocab_size: 101,
    };
    let long = ForwardError::SourceTooLong {
        tokens: 97,
        source_len: 96,
    };
    for (source, error) in [
        (vec![], ForwardError::EmptySource),
        (text(97, 1), long),
        (vec![3, 101], unknown),
    ] {
        assert_eq!(model.encode(&mut cache, &source), Err(error));
        assert_eq!(cache.len(), 8);
    }
    cache.truncate(0);
    let found = extend(&mut model, &mut cache, &text(8, 2)).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn a_tree_of_no_chosen_path_takes_no_more_tokens() {
    let mut model = load(config(), WeightFormat::F32);
    let mut cache = model.new_cache();
    model.encode(&mut cache, &[1, 2]).unwrap();
    trials::forward(&mut model, &mut cache, &[1, 2, 3], &[None, None], 0).unwrap();
    let refused = extend(&mut model, &mut cache, &[4]);
    assert_eq!(refused, Err(ForwardError::TreeInCache { from: 1 }));
    // Another source takes the tree away.
    model.encode(&mut cache, &[1, 2]).unwrap();
    assert!(extend(&mut model, &mut cache, &[4]).is_ok());
}

/// As transformers 5 saves v1.1: it calls the head tied, and stores one of its own.
#[test]
fn a_head_in_the_file_is_the_models_own() {
    let checkpoint = Checkpoint::random(config(), 7).unwrap();
    let called_tied = ModelConfig {
        tie_word_embeddings: true,
        ..config()
    };
    let load = |config: &ModelConfig| T5::load(config, checkpoint.weights(), WeightFormat::F32);
    let expected = fresh(&mut load(&config()).unwrap(), &[1, 2, 3], &[0, 5]);
    assert!(load(&called_tied).unwrap().ends.own_head.is_some());
    let found = fresh(&mut load(&called_tied).unwrap(), &[1, 2, 3], &[0, 5]);
    assert_eq!(found, expected);
    // Where there is none, the embedding serves.
    let mut tied = self::load(called_tied, WeightFormat::F32);
    assert!(tied.ends.own_head.is_none());
    assert_ne!(fresh(&mut tied, &[1, 2, 3], &[0, 5]).0, expected.0);
}

/// Large enough that products and attention are shared out among threads.
#[test]
fn neither_threads_nor_levels_change_a_bit() {
    let large = ModelConfig {
        hidden_size: 256,
        intermediate_size: 1024,
        heads: 8,
        kv_heads: 8,
        head_dim: 32,
        context_len: 320,
        ..config()
    };
    let in_blocks = CpuFormat {
        weights: WeightFormat::F32,
        kv: KvFormat::Q8_0,
    };
    let formats = WeightFormat::ALL.into_iter().map(CpuFormat::from);
    for (format, (config, len)) in (formats.chain([in_blocks]))
        .flat_map(|format| [(config(), 50), (large.clone(), 300)].map(|case| (format, case)))
    {
        let mut model = load(config, format);
        let (source, tokens) = (text(len, 1), text(len, 2));
        model.cpu.threads = Threads::new(1).into();
        let expected = fresh(&mut model, &source, &tokens);
        for threads in [2, 3] {
            model.cpu.threads = Threads::new(threads).into();
            let found = fresh(&mut model, &source, &tokens);
            assert!(found == expected, "{format:?}, {threads} threads");
        }
        for level in Level::all() {
            model.cpu.level = level;
            let found = fresh(&mut model, &source, &tokens);
            assert!(found == expected, "{format:?} {level:?}");
        }
    }
}

#[test]
fn missing_and_misshapen_tensors_are_named() {
    let tied = ModelConfig {
        tie_word_embeddings: true,
        ..config()
    };
    let checkpoint = Checkpoint::random(tied.clone(), 7).unwrap();
    let load = |config: &ModelConfig| {
        let refused = T5::load(config, checkpoint.weights(), WeightFormat::F32);
        refused.unwrap_err().to_string()
    };
    let dense = "encoder.block.0.layer.1.DenseReluDense";
    trials::refusals_name_the_tensor(
        &tied,
        load,
        &[
            (
                |c| c.layers = 4,
                "decoder.block.3.layer.0.layer_norm.weight is missing",
            ),
            (
                |c| c.gated = false,
                &format!("{dense}.wi.weight is missing"),
            ),
            (
                |c| c.vocab_size = 100,
                "shared.weight has shape [101, 40], the config implies [100, 40]",
            ),
            (
                |c| c.intermediate_size = 71,
                &format!("{dense}.wi_0.weight has shape [72, 40], the config implies [71, 40]"),
            ),
            (
                |c| c.tie_word_embeddings = false,
                "lm_head.weight is missing",
            ),
        ],
    );
}
