//! Numbers in the formats of a file.

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};
use half::f16;

use super::error::GgufWriteError;
use crate::weights::{
    Weights,
    layout::{Layout, NamedTensor, rotary_source},
};

/// Numbers quantised at once by candle, which copies them.
const PIECE: usize = 1 << 20;

/// The contents of a tensor in `format`, as llama.cpp lays it out.
///
/// A tensor that is stored in that format already is taken as it is.
pub(super) fn tensor(
    weights: &Weights,
    tensor: &NamedTensor,
    format: GgmlDType,
) -> Result<Vec<u8>, GgufWriteError> {
    let name = &tensor.hugging_face;
    let stored = match tensor.layout {
        Layout::PlusOne => None,
        _ => weights.blocks(name, &tensor.shape, format)?,
    };
    let bytes = if let Some(bytes) = stored {
        bytes
    } else {
        let mut values = weights.tensor(name, &tensor.shape)?;
        if tensor.layout == Layout::PlusOne {
            for value in &mut values {
                *value += 1.0;
            }
        }
        encode(&values, format).map_err(|reason| GgufWriteError::Quantize {
            name: name.clone(),
            reason,
        })?
    };
    let Layout::RotaryPairs { heads } = tensor.layout else {
        return Ok(bytes);
    };
    let rows = tensor.shape[0];
    let row = bytes.len() / rows;
    let mut ordered = Vec::with_capacity(bytes.len());
    for at in 0..rows {
        let source = rotary_source(at, rows, heads);
        ordered.extend_from_slice(&bytes[source * row..][..row]);
    }
    Ok(ordered)
}

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
