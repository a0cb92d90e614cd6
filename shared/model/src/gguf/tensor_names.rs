//! What tensors are called in a GGUF file, and how they are laid out there.

use crate::config::ModelConfig;
use crate::decoder::tensors::{Part, TensorNames};
use crate::weights::{Layout, NamedTensor};

/// Every tensor that a decoder-only model of `config` has, under the `names` of its checkpoint.
pub(crate) fn tensors(config: &ModelConfig, names: TensorNames) -> Vec<NamedTensor> {
    let norm = if config.norm_plus_one {
        Layout::PlusOne
    } else {
        Layout::Same
    };
    let gguf = config.architecture.family().gguf.as_ref();
    let rotated = gguf.is_some_and(|gguf| gguf.rotary_pairs);
    let layout = |part: Part| match part {
        Part::Query if rotated => Layout::RotaryPairs {
            heads: config.heads,
        },
        Part::Key if rotated => Layout::RotaryPairs {
            heads: config.kv_heads,
        },
        // A vector is a norm.
        part if part.shape(config).len() == 1 => norm,
        _ => Layout::Same,
    };
    let named = |hugging_face: String, gguf: &str, shape: Vec<usize>, layout| NamedTensor {
        hugging_face,
        gguf: gguf.to_owned(),
        shape,
        layout,
    };
    let hidden = config.hidden_size;
    let table = vec![config.vocab_size, hidden];
    let embedding = names.embedding();
    let mut tensors = vec![
        named(embedding, EMBEDDING, table.clone(), Layout::Same),
        named(names.norm(), "output_norm.weight", vec![hidden], norm),
    ];
    if !config.tie_word_embeddings {
        tensors.push(named(names.head(), HEAD, table, Layout::Same));
    }
    for layer in 0..config.layers {
        for part in Part::of(config) {
            let gguf = format!("blk.{layer}.{}", name(part));
            let shape = part.shape(config);
            if part.has_bias(config) {
                let bias = names.bias(config, layer, part);
                let bias = named(bias, &format!("{gguf}.bias"), vec![shape[0]], layout(part));
                tensors.push(bias);
            }
            let weight = names.weight(config, layer, part);
            tensors.push(named(
                weight,
                &format!("{gguf}.weight"),
                shape,
                layout(part),
            ));
        }
    }
    tensors
}

/// The embedding table.
pub(crate) const EMBEDDING: &str = "token_embd.weight";
/// The LM head, where it is not the embedding table.
pub(crate) const HEAD: &str = "output.weight";

/// A part's name within a layer.
fn name(part: Part) -> &'static str {
    match part {
        Part::AttentionNorm => "attn_norm",
        Part::Query => "attn_q",
        Part::Key => "attn_k",
        Part::Value => "attn_v",
        Part::QueryKeyValue => "attn_qkv",
        Part::QueryNorm => "attn_q_norm",
        Part::KeyNorm => "attn_k_norm",
        Part::Output => "attn_output",
        Part::AttentionPostNorm => "post_attention_norm",
        Part::MlpNorm => "ffn_norm",
        Part::Gate => "ffn_gate",
        // One after the other under the name of the second, as llama.cpp has them.
        Part::Up | Part::GateUp => "ffn_up",
        Part::Down => "ffn_down",
        Part::MlpPostNorm => "post_ffw_norm",
    }
}
