//! What tensors are called and how they are laid out in a GGUF file, beside Hugging Face.

use crate::{
    config::{Architecture, ModelConfig},
    decoder::tensors::{Part, TensorNames},
};

/// How a tensor's contents in the file differ from the Hugging Face checkpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Not at all.
    Same,
    /// Rows of a head stand in the order in which llama.cpp rotates them for the Llama family: a
    /// dimension beside the one it is paired with.
    RotaryPairs {
        /// Heads the rows belong to.
        heads: usize,
    },
    /// One is added to each weight: Gemma multiplies by 1 + weight, and llama.cpp by what it finds.
    PlusOne,
}

/// A tensor under both names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedTensor {
    pub(crate) hugging_face: String,
    pub(crate) gguf: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) layout: Layout,
}

/// The architecture's name in GGUF; `None` for those that have none here.
pub(crate) fn architecture(architecture: Architecture) -> Option<&'static str> {
    match architecture {
        // llama.cpp runs Mistral as a Llama.
        Architecture::Llama | Architecture::Mistral => Some("llama"),
        Architecture::Qwen2 => Some("qwen2"),
        Architecture::Qwen3 => Some("qwen3"),
        Architecture::Gemma2 => Some("gemma2"),
        Architecture::Gemma3 => Some("gemma3"),
        Architecture::T5 => None,
    }
}

/// Every tensor that a decoder-only model of `config` has, under the `names` of its checkpoint.
pub(crate) fn tensors(config: &ModelConfig, names: TensorNames) -> Vec<NamedTensor> {
    let norm = if config.norm_plus_one {
        Layout::PlusOne
    } else {
        Layout::Same
    };
    let rotated = matches!(
        config.architecture,
        Architecture::Llama | Architecture::Mistral
    );
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
        Part::QueryNorm => "attn_q_norm",
        Part::KeyNorm => "attn_k_norm",
        Part::Output => "attn_output",
        Part::AttentionPostNorm => "post_attention_norm",
        Part::MlpNorm => "ffn_norm",
        Part::Gate => "ffn_gate",
        Part::Up => "ffn_up",
        Part::Down => "ffn_down",
        Part::MlpPostNorm => "post_ffw_norm",
    }
}

/// Which row of a checkpoint stands at row `row` of the file, `rows` being those of all `heads`.
///
/// A checkpoint pairs dimension i of a head with i + half; the file has them side by side.
pub(crate) fn rotary_source(row: usize, rows: usize, heads: usize) -> usize {
    let head_dim = rows / heads;
    let (head, within) = (row / head_dim, row % head_dim);
    head * head_dim + within % 2 * (head_dim / 2) + within / 2
}
