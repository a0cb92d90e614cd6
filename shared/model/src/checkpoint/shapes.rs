//! Which tensors a checkpoint holds.

use crate::{
    config::{ModelConfig, architecture::t5},
    decoder::tensors::{Part, TensorNames},
};

/// Names and shapes of all tensors, a decoder-only model's under `names`.
pub(super) fn shapes(config: &ModelConfig, names: TensorNames) -> Vec<(String, Vec<usize>)> {
    if config.encoder.is_some() {
        return t5::shapes(config);
    }
    let (vocab, hidden) = (config.vocab_size, config.hidden_size);
    let mut shapes = vec![
        (names.embedding(), vec![vocab, hidden]),
        (names.norm(), vec![hidden]),
    ];
    if !config.tie_word_embeddings {
        shapes.push((names.head(), vec![vocab, hidden]));
    }
    for layer in 0..config.layers {
        for part in Part::of(config) {
            let shape = part.shape(config);
            if part.has_bias(config) {
                shapes.push((names.bias(config, layer, part), vec![shape[0]]));
            }
            shapes.push((names.weight(config, layer, part), shape));
        }
    }
    shapes
}
