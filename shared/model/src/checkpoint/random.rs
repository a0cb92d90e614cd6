//! Weights of a model that was never trained.

use std::collections::BTreeMap;

use safetensors::{Dtype, serialize, tensor::TensorView};

use super::shapes::shapes;
use crate::{config::ModelConfig, decoder::tensors::TensorNames, weights::WeightsError};

/// A safetensors file with every tensor that `config` implies. Matrices are uniform with the
/// variance 1 / inputs, so that hidden states neither vanish nor explode, times what `scale` says of
/// their names; norms multiply by 1, biases are 0.
pub(crate) fn weights(
    config: &ModelConfig,
    seed: u64,
    scale: impl Fn(&str) -> f32,
) -> Result<Vec<u8>, WeightsError> {
    let mut generator = SplitMix(seed);
    let norm = if config.norm_plus_one { 0.0 } else { 1.0 };
    let data: BTreeMap<String, (Vec<usize>, Vec<u8>)> = shapes(config, TensorNames::TEXT)
        .into_iter()
        .map(|(name, shape)| {
            let count = shape.iter().product::<usize>();
            let values: Vec<f32> = match shape[..] {
                [_, inputs] => {
                    let width = (3.0 / inputs as f32).sqrt() * scale(&name);
                    (0..count)
                        .map(|_| width * generator.next_signed())
                        .collect()
                }
                _ if name.contains("norm") => vec![norm; count],
                _ => vec![0.0; count],
            };
            let bytes = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            (name, (shape, bytes))
        })
        .collect();
    let malformed = |error| WeightsError::malformed("a file of random weights", &error);
    let views = data
        .iter()
        .map(|(name, (shape, bytes))| {
            Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(malformed)?;
    serialize(views, None).map_err(malformed)
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [-1, 1).
    pub(super) fn next_signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}
