//! Families that our own runtime lacks, with weights that mean nothing.

use candle_core::quantized::gguf_file::Value;
use model::gguf_writer::FileFormat;
use model::source::EngineKind;

use super::WAYS;
use super::gguf::Gguf;
use crate::cluster::{Cluster, draft, target};
use crate::lossless::equals_target_only;

const LAYERS: usize = 2;
const WIDTH: usize = 64;
const INNER: usize = 96;
const EXPERTS: usize = 4;

/// Constants under the names that most families have.
fn constants() -> Vec<(&'static str, Value)> {
    let whole = |value: usize| Value::U32(value as u32);
    vec![
        ("context_length", whole(512)),
        ("embedding_length", whole(WIDTH)),
        ("feed_forward_length", whole(INNER)),
        ("block_count", whole(LAYERS)),
        ("attention.head_count", whole(4)),
    ]
}

/// The tensors of each layer, whose names lack "blk.", and those around the layers.
fn tensors(
    vocab_size: usize,
    around: &[(&str, &[usize])],
    layer: &[(&str, &[usize])],
) -> Vec<(String, Vec<usize>)> {
    let mut all = vec![("token_embd.weight".to_owned(), vec![vocab_size, WIDTH])];
    let named = |(name, shape): &(&str, &[usize])| ((*name).to_owned(), shape.to_vec());
    all.extend(around.iter().map(named));
    for index in 0..LAYERS {
        let named =
            |(name, shape): &(&str, &[usize])| (format!("blk.{index}.{name}"), shape.to_vec());
        all.extend(layer.iter().map(named));
    }
    all
}

/// Learned positions, layer norms, biases.
fn gpt2() -> Gguf {
    let mut constants = constants();
    constants.push(("attention.layer_norm_epsilon", Value::F32(1e-5)));
    Gguf::random("gpt2", &constants, |vocab_size| {
        let around: [(&str, &[usize]); 3] = [
            ("position_embd.weight", &[512, WIDTH]),
            ("output_norm.weight", &[WIDTH]),
            ("output_norm.bias", &[WIDTH]),
        ];
        let layer: [(&str, &[usize]); 12] = [
            ("attn_norm.weight", &[WIDTH]),
            ("attn_norm.bias", &[WIDTH]),
            ("attn_qkv.weight", &[3 * WIDTH, WIDTH]),
            ("attn_qkv.bias", &[3 * WIDTH]),
            ("attn_output.weight", &[WIDTH, WIDTH]),
            ("attn_output.bias", &[WIDTH]),
            ("ffn_norm.weight", &[WIDTH]),
            ("ffn_norm.bias", &[WIDTH]),
            ("ffn_up.weight", &[INNER, WIDTH]),
            ("ffn_up.bias", &[INNER]),
            ("ffn_down.weight", &[WIDTH, INNER]),
            ("ffn_down.bias", &[WIDTH]),
        ];
        tensors(vocab_size, &around, &layer)
    })
}

/// A mixture of experts.
fn olmoe() -> Gguf {
    let mut constants = constants();
    constants.push(("attention.layer_norm_rms_epsilon", Value::F32(1e-5)));
    constants.push(("expert_count", Value::U32(EXPERTS as u32)));
    constants.push(("expert_used_count", Value::U32(2)));
    Gguf::random("olmoe", &constants, |vocab_size| {
        let around: [(&str, &[usize]); 2] = [
            ("output_norm.weight", &[WIDTH]),
            ("output.weight", &[vocab_size, WIDTH]),
        ];
        let layer: [(&str, &[usize]); 12] = [
            ("attn_norm.weight", &[WIDTH]),
            ("attn_q.weight", &[WIDTH, WIDTH]),
            ("attn_k.weight", &[WIDTH, WIDTH]),
            ("attn_v.weight", &[WIDTH, WIDTH]),
            ("attn_output.weight", &[WIDTH, WIDTH]),
            ("attn_q_norm.weight", &[WIDTH]),
            ("attn_k_norm.weight", &[WIDTH]),
            ("ffn_norm.weight", &[WIDTH]),
            ("ffn_gate_inp.weight", &[EXPERTS, WIDTH]),
            ("ffn_gate_exps.weight", &[EXPERTS, INNER, WIDTH]),
            ("ffn_up_exps.weight", &[EXPERTS, INNER, WIDTH]),
            ("ffn_down_exps.weight", &[EXPERTS, WIDTH, INNER]),
        ];
        tensors(vocab_size, &around, &layer)
    })
}

/// An encoder, and a decoder that looks at what it read.
fn t5() -> Gguf {
    let mut constants = constants();
    constants.push(("attention.layer_norm_rms_epsilon", Value::F32(1e-5)));
    constants.push(("attention.relative_buckets_count", Value::U32(8)));
    Gguf::random("t5", &constants, |vocab_size| {
        let around: [(&str, &[usize]); 2] = [
            ("enc.output_norm.weight", &[WIDTH]),
            ("dec.output_norm.weight", &[WIDTH]),
        ];
        let mut all = tensors(vocab_size, &around, &[]);
        for index in 0..LAYERS {
            let mut add = |name: &str, shape: &[usize]| {
                let (part, name) = name.split_once('.').expect("a part");
                let name = format!("{part}.blk.{index}.{name}.weight");
                all.push((name, shape.to_vec()));
            };
            for attention in ["enc.attn", "dec.attn", "dec.cross_attn"] {
                add(&format!("{attention}_norm"), &[WIDTH]);
                for matrix in ["q", "k", "v", "o"] {
                    add(&format!("{attention}_{matrix}"), &[WIDTH, WIDTH]);
                }
            }
            for part in ["enc", "dec"] {
                add(&format!("{part}.ffn_norm"), &[WIDTH]);
                add(&format!("{part}.ffn_up"), &[INNER, WIDTH]);
                add(&format!("{part}.ffn_down"), &[WIDTH, INNER]);
            }
        }
        all
    })
}

/// llama.cpp takes every call for them: it computes each batch alone, or as a decoder without a source.
#[test]
fn what_continues_no_text_is_refused_by_name() {
    let draft = || Gguf::of("draft", FileFormat::F32);
    for (gguf, words) in [
        (t5(), "it has an encoder"),
        (draft().named("llada"), "it keeps no keys and values"),
        (
            draft().with("llama.attention.causal", Value::Bool(false)),
            "attends to later ones",
        ),
    ] {
        let refused = gguf.source().load().expect_err(words).to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[tokio::test]
async fn they_verify_and_draft() {
    for (family, gguf) in [("gpt2", gpt2()), ("olmoe", olmoe())] {
        let mut by_us = gguf.source();
        by_us.engine = EngineKind::Outrider;
        let refused = by_us.load().expect_err("another family").to_string();
        let expected = format!("{family:?} is not supported");
        assert!(refused.contains(&expected), "{refused}");
        let cluster = Cluster::of(draft(), gguf.served()).await;
        equals_target_only(&cluster, 1, &WAYS).await;
        let cluster = Cluster::of(gguf.served(), target()).await;
        equals_target_only(&cluster, 1, &WAYS).await;
    }
}
