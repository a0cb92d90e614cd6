//! Numbers in the formats of a file.

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};
use half::f16;

/// Numbers quantised at once by candle, which copies them.
const PIECE: usize = 1 << 20;

/// Whole blocks of `format`.
///
/// # Errors
/// Why numbers cannot be in it.
pub(crate) fn encode(values: &[f32], format: GgmlDType) -> Result<Vec<u8>, String> {
    match format {
        GgmlDType::F32 => Ok(values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()),
        GgmlDType::F16 => values
            .iter()
            .map(|value| f16::from_f32(*value))
            .map(|value| {
                let fits = value.is_finite().then(|| value.to_le_bytes());
                fits.ok_or_else(|| "a number is too large for f16".to_owned())
            })
            .collect::<Result<Vec<[u8; 2]>, _>>()
            .map(Vec::into_flattened),
        GgmlDType::Q8_0 => {
            let (blocks, _) = values.as_chunks::<32>();
            let mut bytes = Vec::with_capacity(blocks.len() * 34);
            for block in blocks {
                let (scale, quants) = q8_0(block);
                if !scale.is_finite() {
                    return Err("a number is too large for Q8_0".to_owned());
                }
                bytes.extend(scale.to_le_bytes());
                bytes.extend(quants.map(i8::cast_unsigned));
            }
            Ok(bytes)
        }
        other => {
            let candle = |error: candle_core::Error| error.to_string();
            let mut bytes = Vec::new();
            for piece in values.chunks(PIECE) {
                let tensor = Tensor::from_slice(piece, piece.len(), &Device::Cpu);
                let tensor = tensor.and_then(|tensor| QTensor::quantize(&tensor, other));
                bytes.extend_from_slice(&tensor.map_err(candle)?.data().map_err(candle)?);
            }
            Ok(bytes)
        }
    }
}

/// A block of Q8_0: scale and quants, the same as a matrix that is quantised when it is loaded has.
fn q8_0(values: &[f32; 32]) -> (f16, [i8; 32]) {
    let largest = values
        .iter()
        .fold(0.0_f32, |max, value| max.max(value.abs()));
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let quants = values.map(|value| (value * inverse).round_ties_even() as i8);
    (f16::from_f32(largest / 127.0), quants)
}
