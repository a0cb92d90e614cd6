mod families;
mod trees;
mod windows;

use speculation::simd::Level;

use super::*;
use crate::{
    checkpoint::Checkpoint,
    config::{Activation, Architecture},
    cpu::Threads,
    linear::WeightFormat,
    rope::RopeScaling,
    tests::{self as trials, extend, fresh, text},
};

/// A small model with every option that the default pair lacks: biases, a head of its own, an odd
/// number of query heads a key head, a head dimension that is no multiple of a vector.
fn config() -> ModelConfig {
    ModelConfig {
        vocab_size: 101,
        hidden_size: 48,
        intermediate_size: 72,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 10,
        rms_norm_eps: 1e-5,
        context_len: 96,
        tie_word_embeddings: false,
        qkv_bias: true,
        output_bias: true,
        attention_scale: 1.0 / 10_f32.sqrt(),
        mlp_bias: true,
        ..ModelConfig::llama()
    }
}

/// The same with what Gemma has: norms on all sides that count from 1, caps, scales, a window in one
/// layer of two, and a rotation of its own there.
fn gemma() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Gemma3,
        norm_plus_one: true,
        post_norms: true,
        qk_norm: true,
        activation: Activation::GeluTanh,
        attention_softcap: Some(5.0),
        logit_softcap: Some(3.0),
        embedding_scale: Some(48_f32.sqrt()),
        window: Some(7),
        windowed: vec![true, false],
        window_rope: Some(RopeConfig {
            theta: 100.0,
            scaling: RopeScaling::Linear { factor: 2.0 },
        }),
        ..config()
    }
}

fn load(config: ModelConfig, format: WeightFormat) -> Decoder {
    let checkpoint = Checkpoint::random(config, 7).unwrap();
    Decoder::load(checkpoint.config(), checkpoint.weights(), format).unwrap()
}

fn model(format: WeightFormat) -> Decoder {
    load(config(), format)
}

/// Both models in both formats, each with its name.
fn models() -> impl Iterator<Item = (String, Decoder)> {
    let configs = [config(), gemma()].into_iter();
    configs.flat_map(|config| {
        WeightFormat::ALL.map(|format| {
            let name = format!("{:?} in {format}", config.architecture);
            (name, load(config.clone(), format))
        })
    })
}

/// Not near: the same bits.
fn same(found: &[f32], expected: &[f32], what: &str) {
    assert!(found == expected, "{what}");
}

#[test]
fn refused_forwards_leave_every_cache_alone() {
    trials::refused_forwards_leave_every_cache_alone(&mut model(WeightFormat::Q8_0), same);
}

#[test]
fn cutting_into_forwards_changes_no_bit() {
    for (name, mut model) in models() {
        let tokens = text(50, 1);
        let (whole, _) = fresh(&mut model, &tokens);
        for cut in [1, 7, 16, 33] {
            let mut cache = model.new_cache();
            let mut logits = Vec::new();
            for chunk in tokens.chunks(cut) {
                logits.extend(extend(&mut model, &mut cache, chunk).0);
            }
            assert_eq!(logits, whole, "{name}, chunks of {cut}");
        }
    }
}

#[test]
fn threads_change_no_bit() {
    for (name, mut model) in models() {
        // So many rows that all that can be shared among threads is.
        let tokens = text(80, 3);
        let mut run = |threads: usize| {
            model.cpu.threads = Threads::own(threads);
            fresh(&mut model, &tokens)
        };
        let one = run(1);
        for threads in [2, 3] {
            assert_eq!(run(threads), one, "{name}, {threads} threads");
        }
    }
}

#[test]
fn truncation_leaves_no_trace() {
    for (name, mut model) in models() {
        let tokens = text(40, 2);
        let expected = fresh(&mut model, &tokens);
        let mut cache = model.new_cache();
        extend(&mut model, &mut cache, &tokens[..19]);
        extend(&mut model, &mut cache, &text(30, 5));
        cache.truncate(19);
        assert_eq!(cache.len(), 19);
        let (logits, hidden) = extend(&mut model, &mut cache, &tokens[19..]);
        assert_eq!(logits, expected.0[19 * 101..], "{name}");
        assert_eq!(hidden, expected.1[19 * 48..], "{name}");
    }
}

#[test]
fn company_changes_no_bit_and_only_scored_rows_come_back() {
    for (name, mut model) in models() {
        let texts = [text(1, 1), text(17, 2), text(5, 3), text(30, 4)];
        let scored_from = [0, 17, 3, 29];
        let mut expected = Vec::new();
        for (tokens, from) in texts.iter().zip(scored_from) {
            expected.extend_from_slice(&fresh(&mut model, tokens).0[from * 101..]);
        }
        let mut caches: Vec<SequenceCache> = texts.iter().map(|_| model.new_cache()).collect();
        let mut batch: Vec<_> = caches
            .iter_mut()
            .zip(&texts)
            .zip(scored_from)
            .map(|((cache, tokens), scored_from)| Segment {
                cache,
                tokens,
                parents: &[],
                scored_from,
            })
            .collect();
        let mut rows = Rows::default();
        model.forward(&mut batch, &mut rows).unwrap();
        assert_eq!(rows.logits.len(), (1 + 2 + 1) * 101);
        assert_eq!(rows.logits, expected, "{name}");
        assert!(rows.hidden.is_empty());
        assert_eq!(
            caches.iter().map(KvCache::len).collect::<Vec<_>>(),
            [1, 17, 5, 30]
        );
    }
}

#[test]
fn every_level_gives_the_same_bits() {
    for (name, mut model) in models() {
        let tokens = text(40, 3);
        let expected = fresh(&mut model, &tokens);
        for level in Level::all() {
            model.cpu.level = level;
            assert_eq!(fresh(&mut model, &tokens), expected, "{name} {level:?}");
        }
    }
}

#[test]
fn a_missing_and_a_misshapen_tensor_are_named() {
    let weights = Checkpoint::random(config(), 7).unwrap();
    let with = |change: fn(&mut ModelConfig)| {
        let mut config = config();
        change(&mut config);
        Decoder::load(&config, weights.weights(), WeightFormat::F32)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        with(|c| c.layers = 3),
        "tensor model.layers.2.input_layernorm.weight is missing"
    );
    assert_eq!(
        with(|c| c.kv_heads = 3),
        "tensor model.layers.0.self_attn.k_proj.weight has shape [20, 48], the config implies [30, 48]"
    );
    assert_eq!(
        with(|c| c.vocab_size = 100),
        "tensor model.embed_tokens.weight has shape [101, 48], the config implies [100, 48]"
    );
}
