//! Weights of models that were never trained, as files.

use candle_core::{DType, Device};
use safetensors::tensor::{Dtype, TensorView};

use super::config::CandleConfig;
use super::error::CandleError;
use super::tensors::{Origin, build};
use crate::random::SplitMix;

/// The bytes of a `model.safetensors` with all tensors that a model of `config` has, in f32, the same for the same
/// `seed`. Matrices are uniform with the variance 1 / inputs, norms are near 1, and biases are small.
///
/// # Errors
/// If candle makes no model of the config.
pub fn random(config: &CandleConfig, seed: u64) -> Result<Vec<u8>, CandleError> {
    let parts = build(config, Origin::Assumed, DType::F32, &Device::Cpu)?;
    let mut generator = SplitMix(seed);
    let drawn = parts.shapes.iter().map(|(name, shape)| {
        let (middle, width) = match shape[..] {
            [_, inputs] => (0.0, (3.0 / inputs as f32).sqrt()),
            _ if ["norm.weight", "ln_f.weight"]
                .iter()
                .any(|end| name.ends_with(end)) =>
            {
                (1.0, 0.3)
            }
            _ => (0.0, 0.1),
        };
        let count = shape.iter().product::<usize>();
        let numbers = (0..count).map(|_| middle + width * generator.next_signed());
        numbers.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
    });
    let drawn: Vec<Vec<u8>> = drawn.collect();
    let views = parts
        .shapes
        .iter()
        .zip(&drawn)
        .map(|((name, shape), bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes)?;
            Ok((name.as_str(), view))
        });
    let views = views.collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
    Ok(safetensors::serialize(views, None)?)
}
