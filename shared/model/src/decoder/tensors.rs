//! Names and shapes of a decoder-only model's tensors, in Hugging Face's checkpoints and in GGUF files: the one place
//! that knows them.

use std::collections::BTreeMap;

use crate::config::ModelConfig;
use crate::config::architecture::FusedMatrices;
use crate::weights::{NamedTensor, RowRange, TensorLayout, Weights};

/// The embedding table in a GGUF file.
pub(crate) const GGUF_EMBEDDING: &str = "token_embd.weight";
/// The LM head in a GGUF file, where it is not the embedding table.
pub(crate) const GGUF_HEAD: &str = "output.weight";

/// What a layer's tensors are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerPart {
    /// Norm before attention.
    AttentionNorm,
    Query,
    Key,
    Value,
    /// The three as one matrix, in checkpoints that have them so.
    QueryKeyValue,
    /// Norms of queries and keys, of each head or of all at once.
    QueryNorm,
    KeyNorm,
    Output,
    /// Norm of what attention adds.
    AttentionPostNorm,
    /// Norm before the feed-forward network.
    MlpNorm,
    Gate,
    Up,
    /// The two as one matrix, in checkpoints that have them so.
    GateUp,
    Down,
    /// Norm of what the feed-forward network adds.
    MlpPostNorm,
}

impl LayerPart {
    /// All parts in their order, with their names within a layer: of Hugging Face's checkpoints, and of GGUF files.
    const TABLE: [(Self, &'static str, &'static str); 15] = [
        (Self::AttentionNorm, "input_layernorm", "attn_norm"),
        (Self::Query, "self_attn.q_proj", "attn_q"),
        (Self::Key, "self_attn.k_proj", "attn_k"),
        (Self::Value, "self_attn.v_proj", "attn_v"),
        (Self::QueryKeyValue, "self_attn.qkv_proj", "attn_qkv"),
        (Self::QueryNorm, "self_attn.q_norm", "attn_q_norm"),
        (Self::KeyNorm, "self_attn.k_norm", "attn_k_norm"),
        (Self::Output, "self_attn.o_proj", "attn_output"),
        (
            Self::AttentionPostNorm,
            "post_attention_layernorm",
            "post_attention_norm",
        ),
        // What most models call the norm after attention stands before the feed-forward network.
        (Self::MlpNorm, "post_attention_layernorm", "ffn_norm"),
        (Self::Gate, "mlp.gate_proj", "ffn_gate"),
        (Self::Up, "mlp.up_proj", "ffn_up"),
        // One after the other under the name of the second, as llama.cpp has them.
        (Self::GateUp, "mlp.gate_up_proj", "ffn_up"),
        (Self::Down, "mlp.down_proj", "ffn_down"),
        (
            Self::MlpPostNorm,
            "post_feedforward_layernorm",
            "post_ffw_norm",
        ),
    ];

    /// The parts that a checkpoint of `config` has.
    pub(crate) fn of(config: &ModelConfig) -> impl Iterator<Item = Self> {
        let (pre_norms, post_norms) = (config.pre_norms, config.post_norms);
        let qk_norm = config.qk_norm;
        let fused = config.architecture.family().form.fused;
        let all = Self::TABLE.into_iter().map(|(part, ..)| part);
        all.filter(move |part| match part {
            Self::Query | Self::Key | Self::Value => fused != FusedMatrices::All,
            Self::QueryKeyValue => fused == FusedMatrices::All,
            Self::Gate | Self::Up => fused == FusedMatrices::None,
            Self::GateUp => fused != FusedMatrices::None,
            Self::QueryNorm | Self::KeyNorm => qk_norm,
            Self::AttentionNorm | Self::MlpNorm => pre_norms,
            Self::AttentionPostNorm | Self::MlpPostNorm => post_norms,
            Self::Output | Self::Down => true,
        })
    }

    /// The parts whose rows this one has, one after the other; none if it is no fused matrix.
    pub(super) fn fused(self) -> &'static [Self] {
        match self {
            Self::QueryKeyValue => &[Self::Query, Self::Key, Self::Value],
            Self::GateUp => &[Self::Gate, Self::Up],
            _ => &[],
        }
    }

    /// Returns its name within a layer. Of the families without names of their own, only those with norms after each
    /// block mean what they call the norm after attention.
    fn name(self, config: &ModelConfig) -> &'static str {
        let (_, usual, gguf) = Self::TABLE[self as usize];
        let mut own = config.architecture.family().form.names.iter();
        match own.find(|(part, _)| *part == gguf) {
            Some((_, own)) => own,
            None if self == Self::MlpNorm && config.post_norms => "pre_feedforward_layernorm",
            None => usual,
        }
    }

    /// The order in which llama.cpp rotates, of queries and keys.
    fn rotary_pairs(self, config: &ModelConfig) -> Option<TensorLayout> {
        let heads = match self {
            Self::Query => config.heads,
            Self::Key => config.kv_heads,
            _ => return None,
        };
        let dims = config.rope.as_ref().and_then(|rope| rope.dims);
        let dims = dims.unwrap_or(config.head_dim);
        Some(TensorLayout::RotaryPairs { heads, dims })
    }

    /// Returns how its contents in a GGUF file differ from the checkpoint's.
    fn layout(self, config: &ModelConfig) -> TensorLayout {
        let gguf = config.architecture.family().gguf.as_ref();
        let rotated = gguf.is_some_and(|gguf| gguf.rotary_pairs);
        match self.rotary_pairs(config).filter(|_| rotated) {
            Some(pairs) => pairs,
            // A vector is a norm.
            None if self.shape(config).len() == 1 => norm_layout(config),
            None => TensorLayout::Same,
        }
    }

    /// Its weight's shape: `(outputs, inputs)` of a projection, `(width)` of a norm.
    pub(crate) fn shape(self, config: &ModelConfig) -> Vec<usize> {
        let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
        let query = config.heads * config.head_dim;
        let kv = config.kv_heads * config.head_dim;
        match self {
            Self::AttentionNorm | Self::AttentionPostNorm | Self::MlpNorm | Self::MlpPostNorm => {
                vec![hidden]
            }
            Self::QueryNorm if config.qk_norm_whole => vec![query],
            Self::KeyNorm if config.qk_norm_whole => vec![kv],
            Self::QueryNorm | Self::KeyNorm => vec![config.head_dim],
            Self::Query => vec![query, hidden],
            Self::Key | Self::Value => vec![kv, hidden],
            Self::QueryKeyValue => vec![query + 2 * kv, hidden],
            Self::Output => vec![hidden, query],
            Self::GateUp => vec![2 * ffn, hidden],
            Self::Gate | Self::Up => vec![ffn, hidden],
            Self::Down => vec![hidden, ffn],
        }
    }

    /// Whether it has a bias, one number an output.
    pub(crate) fn has_bias(self, config: &ModelConfig) -> bool {
        match self {
            Self::Query | Self::Key | Self::Value | Self::QueryKeyValue => config.qkv_bias,
            Self::Output => config.output_bias,
            Self::Gate | Self::Up | Self::GateUp | Self::Down => config.mlp_bias,
            Self::AttentionNorm
            | Self::QueryNorm
            | Self::KeyNorm
            | Self::AttentionPostNorm
            | Self::MlpNorm
            | Self::MlpPostNorm => false,
        }
    }
}

/// Where a checkpoint keeps its language model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorNames {
    /// Before the names of the model's tensors.
    model: &'static str,
    /// Before the LM head's.
    head: &'static str,
}

impl TensorNames {
    /// Names as of models of text alone.
    pub(crate) const TEXT: Self = Self {
        model: "model.",
        head: "",
    };
    /// Models that see pictures keep theirs deeper; this changed from one release to another.
    const NESTED: [Self; 2] = [
        Self {
            model: "language_model.model.",
            head: "language_model.",
        },
        Self {
            model: "model.language_model.",
            head: "",
        },
    ];

    /// Those that `weights` uses; [`Self::TEXT`] if it uses none, whose tensors are then missing.
    pub(crate) fn of(weights: &Weights) -> Self {
        let mut nested = Self::NESTED.into_iter();
        nested
            .find(|names| weights.contains(&names.embedding()))
            .unwrap_or(Self::TEXT)
    }

    /// Whether a tensor belongs to what else there is in a checkpoint of which the language model is one part.
    pub(crate) fn is_other_model(self, name: &str) -> bool {
        let is_nested = self.model != Self::TEXT.model;
        let head = self.head();
        is_nested && !name.starts_with(self.model) && name != head
    }

    /// The embedding table, `(vocab, hidden)`.
    pub(crate) fn embedding(self) -> String {
        format!("{}embed_tokens.weight", self.model)
    }

    /// The final norm, `(hidden)`.
    pub(crate) fn norm(self) -> String {
        format!("{}norm.weight", self.model)
    }

    /// The LM head, `(vocab, hidden)`.
    pub(crate) fn head(self) -> String {
        format!("{}lm_head.weight", self.head)
    }

    /// A weight of layer `layer`.
    pub(crate) fn weight(self, config: &ModelConfig, layer: usize, part: LayerPart) -> String {
        self.tensor(config, layer, part, "weight")
    }

    /// A bias of layer `layer`.
    pub(crate) fn bias(self, config: &ModelConfig, layer: usize, part: LayerPart) -> String {
        self.tensor(config, layer, part, "bias")
    }

    fn tensor(self, config: &ModelConfig, layer: usize, part: LayerPart, kind: &str) -> String {
        let (model, part) = (self.model, part.name(config));
        format!("{model}layers.{layer}.{part}.{kind}")
    }
}

/// Returns every tensor that a model of `config` has, under the `names` of its checkpoint.
pub(crate) fn tensors(config: &ModelConfig, names: TensorNames) -> Vec<NamedTensor> {
    let named = |hugging_face: String, gguf: &str, shape: Vec<usize>, layout| NamedTensor {
        hugging_face,
        gguf: gguf.to_owned(),
        shape,
        layout,
    };
    let hidden = config.hidden_size;
    let table = vec![config.vocab_size, hidden];
    let (embedding, norm) = (names.embedding(), norm_layout(config));
    let mut tensors = vec![
        named(embedding, GGUF_EMBEDDING, table.clone(), TensorLayout::Same),
        named(names.norm(), "output_norm.weight", vec![hidden], norm),
    ];
    if !config.tie_word_embeddings {
        tensors.push(named(names.head(), GGUF_HEAD, table, TensorLayout::Same));
    }
    for layer in 0..config.layers {
        for part in LayerPart::of(config) {
            let (shape, layout) = (part.shape(config), part.layout(config));
            let gguf = format!("blk.{layer}.{}", LayerPart::TABLE[part as usize].2);
            if part.has_bias(config) {
                let bias = names.bias(config, layer, part);
                let gguf = format!("{gguf}.bias");
                tensors.push(named(bias, &gguf, vec![shape[0]], layout));
            }
            let weight = names.weight(config, layer, part);
            tensors.push(named(weight, &format!("{gguf}.weight"), shape, layout));
        }
    }
    tensors
}

/// Returns the layout of norms in a GGUF file.
fn norm_layout(config: &ModelConfig) -> TensorLayout {
    if config.norm_plus_one {
        TensorLayout::PlusOne
    } else {
        TensorLayout::Same
    }
}

/// The matrices that a checkpoint of `config` holds as rows of others, by the names they have in checkpoints that
/// keep them apart.
pub(crate) fn row_ranges(config: &ModelConfig, names: TensorNames) -> BTreeMap<String, RowRange> {
    let layers =
        (0..config.layers).flat_map(|layer| LayerPart::of(config).map(move |part| (layer, part)));
    let mut ranges = BTreeMap::new();
    for (layer, fused) in layers {
        let mut first = 0;
        for &part in fused.fused() {
            let rows = part.shape(config)[0];
            let range = |of| RowRange {
                of,
                rows: first..first + rows,
                total: fused.shape(config)[0],
            };
            let weight = names.weight(config, layer, part);
            ranges.insert(weight, range(names.weight(config, layer, fused)));
            if fused.has_bias(config) {
                let bias = names.bias(config, layer, part);
                ranges.insert(bias, range(names.bias(config, layer, fused)));
            }
            first += rows;
        }
    }
    ranges
}

/// The tensors whose contents in a checkpoint of `config` stand otherwise than they are computed with, by their names.
pub(crate) fn layouts(config: &ModelConfig, names: TensorNames) -> BTreeMap<String, TensorLayout> {
    let mut layouts = BTreeMap::new();
    if !config.architecture.family().form.rotary_pairs {
        return layouts;
    }
    for layer in 0..config.layers {
        for part in LayerPart::of(config) {
            let Some(pairs) = part.rotary_pairs(config) else {
                continue;
            };
            layouts.insert(names.weight(config, layer, part), pairs);
            layouts.insert(names.bias(config, layer, part), pairs);
        }
    }
    layouts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_finds_its_row_of_the_table() {
        for (index, (part, ..)) in LayerPart::TABLE.into_iter().enumerate() {
            assert_eq!(part as usize, index);
        }
    }
}
