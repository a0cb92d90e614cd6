//! Tensors of a checkpoint that no part of the model reads: without them it may be another model than was trained.

use super::CheckpointError;
use super::tensors::shapes;
use crate::config::ModelConfig;
use crate::decoder::tensors::{TensorNames, row_ranges};
use crate::weights::Weights;

/// Most names in a message.
const MOST_NAMED: usize = 4;

/// Ends of names of tensors that a model computes itself, that stand for another one, or that nothing ever read.
const HARMLESS: [&str; 12] = [
    "rotary_emb.inv_freq",
    "rotary_emb.cos_cached",
    "rotary_emb.sin_cached",
    "attn_rot_embd.weight",
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
    "position_ids",
    "masked_bias",
    "embed_tokens.weight",
    "lm_head.weight",
    // T5's first releases have it, where attention over the encoder takes no positions.
    "EncDecAttention.relative_attention_bias.weight",
];

/// Warns of the tensors that are not read, by their names.
///
/// # Errors
/// If layers have biases, norms or adapters that a model of `config` has not.
pub(super) fn check(config: &ModelConfig, weights: &Weights) -> Result<(), CheckpointError> {
    let (in_layers, others) = find(config, weights);
    if !in_layers.is_empty() {
        let names = some_of(&in_layers);
        return Err(CheckpointError::Unread { names });
    }
    if !others.is_empty() {
        tracing::warn!(
            tensors = some_of(&others),
            "the model's files have tensors that are not read; if they are a part of it, it computes something else"
        );
    }
    Ok(())
}

/// Returns the tensors that nothing reads and that may matter, by their names in the files: those that add to what a
/// layer computes, and the others.
pub(super) fn find<'a>(config: &ModelConfig, weights: &'a Weights) -> (Vec<&'a str>, Vec<&'a str>) {
    let names = TensorNames::of(weights);
    let whole = shapes(config, names).into_iter().map(|(name, _)| name);
    // Matrices that this family has as one may be there one by one.
    let parts = row_ranges(config, names).into_keys();
    let is_silent = |name: &str| {
        let is_other = !weights.is_gguf() && names.is_other_model(name);
        // Encoders of pictures lie beside the model in some GGUF files.
        let is_picture = weights.is_gguf() && (name.starts_with("v.") || name.starts_with("mm."));
        is_other || is_picture || HARMLESS.iter().any(|end| name.ends_with(end))
    };
    let unread = weights.beside(whole.chain(parts));
    unread
        .into_iter()
        .filter(|name| !is_silent(name))
        .partition(|name| is_of_layer(name, config.layers) && changes_layer(name))
}

/// Whether a tensor belongs to one of the layers that are computed.
fn is_of_layer(name: &str, layers: usize) -> bool {
    let mut segments = name.split('.');
    let of = segments
        .by_ref()
        .find(|it| ["layers", "blk", "block"].contains(it));
    let layer = of.and_then(|_| segments.next()?.parse::<usize>().ok());
    layer.is_some_and(|layer| layer < layers)
}

/// Whether a tensor of this name adds to what a layer computes.
fn changes_layer(name: &str) -> bool {
    let kind = name.rsplit('.').next();
    kind == Some("bias") || name.contains("norm") || name.contains("lora_")
}

fn some_of(names: &[&str]) -> String {
    match names.split_at_checked(MOST_NAMED) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_told_by_their_numbers() {
        for (name, expected) in [
            ("model.layers.1.self_attn.q_proj.bias", true),
            ("blk.0.attn_q_norm.weight", true),
            ("decoder.block.1.layer.0.SelfAttention.q.bias", true),
            ("model.layers.2.self_attn.q_proj.bias", false),
            ("model.norm.bias", false),
            ("layers.x.bias", false),
        ] {
            assert_eq!(is_of_layer(name, 2), expected, "{name}");
        }
    }

    #[test]
    fn many_names_are_counted() {
        let names = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(some_of(&names), "a, b, c, d and 2 more");
        assert_eq!(some_of(&names[..2]), "a, b");
    }
}
