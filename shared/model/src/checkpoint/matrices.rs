//! In which formats the matrices of a model are computed: where rows are no whole blocks of the format that is
//! asked for, in another one.

use super::{Checkpoint, shapes::shapes};
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
