//! What is known of a checkpoint's tensors before any of them is read: their shapes, and the formats that they are stored
//! and computed in. Where rows are no whole blocks of the format that is asked for, a matrix is computed in another one.

use std::collections::BTreeMap;

use super::Checkpoint;
use crate::{
    computation::Computation,
    config::{ModelConfig, architecture::t5},
    decoder::tensors::{TensorNames, tensors},
    linear::WeightFormat,
    weights::WeightsError,
};

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

    /// Checks that every tensor is there, in the shape that the config implies.
    ///
    /// # Errors
    /// Names the first one that is not.
    pub fn check_tensors(&self) -> Result<(), WeightsError> {
        let mut tensors = shapes(&self.config, TensorNames::of(&self.weights)).into_iter();
        tensors.try_for_each(|(name, shape)| self.weights.check(&name, &shape))
    }

    /// Bytes of the weights as they are stored, by their formats.
    pub fn stored_bytes(&self) -> BTreeMap<String, u64> {
        let mut bytes = BTreeMap::new();
        for (format, size) in self.weights.sizes() {
            *bytes.entry(format.to_owned()).or_default() += size as u64;
        }
        bytes
    }

    /// Bytes that the weights take where the model is computed so.
    pub fn computed_bytes(&self, computation: Computation) -> u64 {
        let tensors = shapes(&self.config, TensorNames::of(&self.weights));
        let bits = tensors.iter().map(|(_, shape)| {
            let numbers: u64 = shape.iter().map(|&count| count as u64).product();
            numbers * bits_a_number(computation, shape)
        });
        bits.sum::<u64>() / 16
    }
}

/// Returns names and shapes of all tensors, a decoder-only model's under `names`.
pub(super) fn shapes(config: &ModelConfig, names: TensorNames) -> Vec<(String, Vec<usize>)> {
    if config.encoder.is_some() {
        return t5::shapes(config);
    }
    let tensors = tensors(config, names).into_iter();
    tensors
        .map(|tensor| (tensor.hugging_face, tensor.shape))
        .collect()
}

/// Sixteenths of a byte that a number takes in a tensor of this shape, the scales of blocks included.
fn bits_a_number(computation: Computation, shape: &[usize]) -> u64 {
    let &[_, inputs] = shape else {
        return 16 * 4;
    };
    match computation {
        Computation::Device(_, format) => {
            let stored = format.stored(inputs);
            (16 * stored.type_size() / stored.block_size()) as u64
        }
        Computation::Cpu(format) => match format.weights.of_rows(inputs) {
            // 32 numbers in 34 bytes, or 256 in 144.
            WeightFormat::Q8_0 => 17,
            WeightFormat::Q4_K => 9,
            WeightFormat::F32 => 16 * 4,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComputeDevice, CpuFormat, KvFormat, ModelConfig, NumberFormat};

    #[test]
    fn sizes_follow_the_format() {
        let checkpoint = Checkpoint::random(ModelConfig::llama(), 1).expect("a model");
        checkpoint.check_tensors().expect("all are there");
        let stored = checkpoint.stored_bytes();
        let in_format = |weights| {
            let kv = KvFormat::F16;
            checkpoint.computed_bytes(Computation::Cpu(CpuFormat { weights, kv }))
        };
        let exact = in_format(WeightFormat::F32);
        assert_eq!(stored, BTreeMap::from([("F32".to_owned(), exact)]));
        let on_gpu =
            |format| checkpoint.computed_bytes(Computation::Device(ComputeDevice::Cuda(0), format));
        assert_eq!(on_gpu(NumberFormat::F32), exact);
        assert_eq!(on_gpu(NumberFormat::Q8_0), in_format(WeightFormat::Q8_0));
        let quantised = in_format(WeightFormat::Q8_0);
        assert!(
            quantised * 3 < exact && quantised * 4 > exact,
            "{quantised} of {exact}"
        );
    }

    #[test]
    fn a_tensor_that_the_config_implies_is_missed() {
        let mut checkpoint = Checkpoint::random(ModelConfig::llama(), 1).expect("a model");
        checkpoint.config.layers += 1;
        let error = checkpoint.check_tensors().expect_err("one layer too few");
        assert!(error.to_string().contains("is missing"), "{error}");
    }
}
