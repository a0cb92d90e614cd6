//! Random weights of models of any size, as files store them: of models that were never trained, and of those made in
//! seconds for timing.

use std::collections::BTreeMap;

use candle_core::quantized::GgmlDType;

use super::tensors::shapes;
use super::{Checkpoint, CheckpointError};
use crate::{
    computation::NumberFormat,
    config::ModelConfig,
    decoder::tensors::TensorNames,
    random::SplitMix,
    weights::{
        Weights, WeightsError, encode,
        file::{TensorFile, TensorInfo},
    },
};

/// Most numbers of a matrix that are drawn where only the time counts; longer matrices repeat these rows.
const DRAWN: usize = 1 << 20;

impl Checkpoint {
    /// A model of random weights, the same for the same `seed`: it babbles, but costs and behaves
    /// like a trained one of its size.
    ///
    /// # Errors
    /// If the config's sizes are too large to be stored.
    pub fn random(config: ModelConfig, seed: u64) -> Result<Self, CheckpointError> {
        Self::random_scaled(config, seed, |_| 1.0)
    }

    /// [`Checkpoint::random`] with every matrix multiplied by what `scale` says of its name. Matrices are drawn layer after
    /// layer, so a model of fewer layers has the same first ones.
    ///
    /// # Errors
    /// As [`Checkpoint::random`].
    pub fn random_scaled(
        config: ModelConfig,
        seed: u64,
        scale: impl Fn(&str) -> f32,
    ) -> Result<Self, CheckpointError> {
        let file = file(&config, seed, NumberFormat::F32, usize::MAX, scale)?;
        Ok(Self::of(config, Weights::from_file(file)))
    }

    /// A model of random weights for timing, of which the same rows are repeated in large matrices: one of billions of
    /// weights is made in seconds. They are stored as `format` computes with them.
    ///
    /// # Errors
    /// If there are numbers that cannot be in `format`.
    pub fn synthetic(
        config: ModelConfig,
        seed: u64,
        format: NumberFormat,
    ) -> Result<Self, CheckpointError> {
        let file = file(&config, seed, format, DRAWN, |_| 1.0)?;
        Ok(Self::of(config, Weights::from_file(file)))
    }
}

/// A file in memory with every tensor that `config` implies. Matrices are uniform with the variance 1 / inputs, so that
/// hidden states neither vanish nor explode, times what `scale` says of their name; norms multiply by 1, biases are 0, and
/// both are in f32. Matrices are stored in what `format` computes with later, and at most `most` numbers of each are
/// drawn.
pub(super) fn file(
    config: &ModelConfig,
    seed: u64,
    format: NumberFormat,
    most: usize,
    scale: impl Fn(&str) -> f32,
) -> Result<TensorFile, WeightsError> {
    let mut generator = SplitMix(seed);
    let norm = if config.norm_plus_one { 0.0 } else { 1.0 };
    let mut bytes = Vec::new();
    let mut tensors = BTreeMap::new();
    for (name, shape) in shapes(config, TensorNames::TEXT) {
        let begin = bytes.len();
        let stored = if let [rows, inputs] = shape[..] {
            let stored = format.stored(inputs);
            let drawn = rows.min((most / inputs).max(1));
            let width = (3.0 / inputs as f32).sqrt() * scale(&name);
            let values = (0..drawn * inputs).map(|_| width * generator.next_signed());
            let values: Vec<f32> = values.collect();
            let piece = encode(&name, &values, stored)?;
            let end = begin + rows * (piece.len() / drawn);
            bytes.reserve_exact(end - begin);
            while bytes.len() < end {
                let some = piece.len().min(end - bytes.len());
                bytes.extend_from_slice(&piece[..some]);
            }
            stored
        } else {
            let value = if name.contains("norm") { norm } else { 0.0_f32 };
            let count: usize = shape.iter().product();
            bytes.extend((0..count).flat_map(|_| value.to_le_bytes()));
            GgmlDType::F32
        };
        let info = TensorInfo {
            format: Some(stored.into()),
            format_name: format!("{stored:?}"),
            shape,
            range: begin..bytes.len(),
        };
        tensors.insert(name, info);
    }
    Ok(TensorFile {
        bytes: Box::new(bytes),
        tensors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checkpoint::Checkpoint, linear::WeightFormat};

    #[test]
    fn a_matrix_is_stored_as_it_is_computed_with() {
        let config = ModelConfig {
            hidden_size: 256,
            intermediate_size: 96,
            ..ModelConfig::llama()
        };
        for (format, down) in [
            (NumberFormat::Bf16, GgmlDType::BF16),
            (NumberFormat::F32, GgmlDType::F32),
            (NumberFormat::Q8_0, GgmlDType::Q8_0),
            // Rows of 96 are no blocks of 256.
            (NumberFormat::Q4_K, GgmlDType::Q8_0),
        ] {
            let file = file(&config, 1, format, DRAWN, |_| 1.0).unwrap();
            let of = |name: &str| file.tensors[name].format.unwrap();
            let found = of("model.layers.0.mlp.down_proj.weight");
            assert_eq!(found, down.into(), "{format}");
            assert_eq!(of("model.norm.weight"), GgmlDType::F32.into());
        }
    }

    #[test]
    fn long_matrices_repeat_their_first_rows() {
        let config = ModelConfig {
            vocab_size: 5000,
            hidden_size: 512,
            heads: 8,
            kv_heads: 8,
            head_dim: 64,
            ..ModelConfig::llama()
        };
        let checkpoint = Checkpoint::synthetic(config, 1, NumberFormat::Q8_0).unwrap();
        let name = "model.embed_tokens.weight";
        let table = checkpoint.weights().tensor(name, &[5000, 512]).unwrap();
        let rows: Vec<_> = table.chunks(512).collect();
        assert!(rows[0] != rows[1] && rows[0] == rows[DRAWN / 512]);
        let power: f32 = table.iter().map(|value| value * value).sum();
        assert!((power / 5000.0 - 1.0).abs() < 0.01, "{power}");
        checkpoint.load(WeightFormat::Q8_0).unwrap();
    }
}
