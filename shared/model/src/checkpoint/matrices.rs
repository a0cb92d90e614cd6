//! The shapes of a checkpoint's tensors, and the formats that the matrices of a model are computed in: where rows are no
//! whole blocks of the format that is asked for, another one.

use super::Checkpoint;
use crate::config::ModelConfig;
use crate::config::architecture::t5;
use crate::decoder::tensors::Part;
use crate::{decoder::tensors::TensorNames, linear::WeightFormat};

/// The matrices of a model in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrices {
    /// Those in another format: names in the checkpoint, and which format.
    pub(crate) others: Vec<(String, WeightFormat)>,
    /// How many there are in all.
    pub(crate) count: usize,
}

impl Checkpoint {
    /// Returns what its matrices are computed in where `format` is asked for.
    pub(crate) fn matrices(&self, format: WeightFormat) -> Matrices {
        let mut tensors = shapes(&self.config, TensorNames::of(&self.weights));
        // Biases of positions are looked up, not multiplied.
        tensors.retain(|(name, _)| !name.ends_with("relative_attention_bias.weight"));
        let computed = tensors
            .into_iter()
            .filter_map(|(name, shape)| match shape[..] {
                [_, inputs] => Some((name, format.of_rows(inputs))),
                _ => None,
            });
        let computed: Vec<_> = computed.collect();
        Matrices {
            count: computed.len(),
            others: (computed.into_iter())
                .filter(|(_, computed)| *computed != format)
                .collect(),
        }
    }
}

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
