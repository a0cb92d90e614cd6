mod families;
mod fused;
mod trees;
mod windows;

use speculation::simd::Level;

use super::*;
use crate::{
    cache::KvFormat,
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
/// layer of two, and a rotation of its own there; and Granite's constants.
fn gemma() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Gemma3,
        norm_plus_one: true,
        post_norms: true,
        qk_norm: true,
        activation: Activation::GeluTanh,
        attention_softcap: Some(5.0),
        logit_softcap: Some(3.0),
        logit_divisor: Some(1.5),
        embedding_scale: Some(48_f32.sqrt()),
        residual_scale: Some(0.7),
        window: Some(7),
        windowed: vec![true, false],
        window_rope: Some(RopeConfig {
            theta: 100.0,
            scaling: RopeScaling::Linear { factor: 2.0 },
            dims: None,
        }),
        ..config()
    }
}

/// The first with OLMo 2's norms: after each block and none before, and over all heads at once.
fn olmo2() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Olmo2,
        pre_norms: false,
        post_norms: true,
        qk_norm: true,
        qk_norm_whole: true,
        ..config()
    }
}

fn load(config: ModelConfig, format: impl Into<CpuFormat>) -> Decoder {
    let checkpoint = Checkpoint::random(config, 7).unwrap();
    Decoder::load(checkpoint.config(), checkpoint.weights(), format).unwrap()
}

fn model(format: WeightFormat) -> Decoder {
    load(config(), format)
}

/// These models in all formats of weights, and with keys and values in blocks, each with its name.
fn models() -> impl Iterator<Item = (String, Decoder)> {
    let configs = [config(), gemma(), olmo2()].into_iter();
    configs.flat_map(|config| {
        let formats = WeightFormat::ALL.into_iter().map(CpuFormat::from);
        let formats = formats.chain([CpuFormat {
            weights: WeightFormat::F32,
            kv: KvFormat::Q8_0,
        }]);
        formats.map(move |format| {
            let CpuFormat { weights, kv } = format;
            let name = format!("{:?} in {weights} and {kv}", config.architecture);
            (name, load(config.clone(), format))
        })
    })
}

#[test]
fn the_contract_holds_in_every_bit() {
    for (name, mut model) in models() {
        trials::holds(&mut model, trials::same, &name);
    }
}

#[test]
fn neither_threads_nor_levels_change_a_bit() {
    for (name, mut model) in models() {
        // So many rows that all that can be shared among threads is.
        let tokens = text(80, 3);
        model.cpu.threads = Threads::new(1).into();
        let expected = fresh(&mut model, &tokens);
        for threads in [2, 3] {
            model.cpu.threads = Threads::new(threads).into();
            let found = fresh(&mut model, &tokens);
            assert_eq!(found, expected, "{name}, {threads} threads");
        }
        for level in Level::all() {
            model.cpu.level = level;
            assert_eq!(fresh(&mut model, &tokens), expected, "{name} {level:?}");
        }
    }
}

#[test]
fn a_missing_and_a_misshapen_tensor_are_named() {
    let checkpoint = Checkpoint::random(config(), 7).unwrap();
    let load = |config: &ModelConfig| {
        let refused = Decoder::load(config, checkpoint.weights(), WeightFormat::F32);
        refused.unwrap_err().to_string()
    };
    let attention = "model.layers.0.self_attn";
    trials::refusals_name_the_tensor(
        &config(),
        load,
        &[
            (
                |c| c.layers = 3,
                "model.layers.2.input_layernorm.weight is missing",
            ),
            (
                |c| c.kv_heads = 3,
                &format!(
                    "{attention}.k_proj.weight has shape [20, 48], the config implies [30, 48]"
                ),
            ),
            (
                |c| c.vocab_size = 100,
                "model.embed_tokens.weight has shape [101, 48], the config implies [100, 48]",
            ),
        ],
    );
}
