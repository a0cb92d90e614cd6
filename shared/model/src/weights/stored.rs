//! A tensor as it is stored: its numbers in f32, and numbers in the formats of a file.

use std::{borrow::Cow, ops::Range};

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QStorage, QTensor},
};
use half::{f16, slice::HalfFloatSliceExt};

use super::file::TensorInfo;
use super::ggml_type::TensorFormat;
use super::{TensorLayout, WeightsError, ggml_type, rotary_source};

/// A tensor's bytes where they lie, and what they mean.
pub(super) struct StoredTensor<'a> {
    /// Of the whole tensor, also where only rows of it are meant.
    pub(super) info: &'a TensorInfo,
    pub(super) layout: TensorLayout,
    pub(super) bytes: &'a [u8],
}

impl<'a> StoredTensor<'a> {
    /// `rows` alone, of a tensor whose rows stand in their order.
    pub(super) fn of_rows(self, rows: Range<usize>) -> Self {
        let all = self.info.shape.first().copied().unwrap_or(1).max(1);
        let row = self.bytes.len() / all;
        Self {
            bytes: &self.bytes[rows.start * row..rows.end * row],
            ..self
        }
    }

    /// The bytes, rows in the order that a model computes with.
    pub(super) fn rows(&self, format: TensorFormat) -> Cow<'_, [u8]> {
        let TensorLayout::RotaryPairs { heads, dims } = self.layout else {
            return Cow::Borrowed(self.bytes);
        };
        let (rows, row) = self.row_bytes(format);
        if row == 0 {
            return Cow::Borrowed(self.bytes);
        }
        let mut ordered = vec![0; self.bytes.len()];
        for (at, source) in self.bytes.chunks_exact(row).enumerate() {
            let to = rotary_source(at, rows, heads, dims);
            ordered[to * row..][..row].copy_from_slice(source);
        }
        Cow::Owned(ordered)
    }

    /// A row as it is stored, which a model has at `index` and takes `row` bytes.
    pub(super) fn row(&self, index: usize, row: usize) -> &'a [u8] {
        let at = match self.layout {
            TensorLayout::RotaryPairs { heads, dims } => {
                super::rotary_place(index, self.bytes.len() / row, heads, dims)
            }
            TensorLayout::Same | TensorLayout::PlusOne => index,
        };
        &self.bytes[at * row..][..row]
    }

    /// Bytes of a row of `inputs` numbers in whole blocks; `None` if the format is not known, or rows are none.
    pub(super) fn whole_row(&self, inputs: usize) -> Option<(TensorFormat, usize)> {
        let format = self.info.format?;
        let row = ggml_type::size(format, inputs).filter(|row| *row > 0)?;
        self.bytes
            .len()
            .is_multiple_of(row)
            .then_some((format, row))
    }

    /// Number of rows, and bytes of each.
    fn row_bytes(&self, format: TensorFormat) -> (usize, usize) {
        let rows = self.info.shape.first().copied().unwrap_or(1);
        let inner: usize = self.info.shape.iter().skip(1).product();
        (rows, ggml_type::size(format, inner).unwrap_or(0))
    }

    /// Appends the numbers to `values`, row by row.
    ///
    /// # Errors
    /// What candle says of a format that it cannot turn into f32.
    pub(super) fn decode(
        &self,
        format: TensorFormat,
        values: &mut Vec<f32>,
    ) -> Result<(), candle_core::Error> {
        let first = values.len();
        decode(format, &self.rows(format), values)?;
        if self.layout == TensorLayout::PlusOne {
            for value in &mut values[first..] {
                *value -= 1.0;
            }
        }
        Ok(())
    }
}

/// Whether blocks have finite scales, and so finite numbers; `None` for formats without such blocks.
pub(super) fn scales_are_finite(format: GgmlDType, bytes: &[u8]) -> Option<bool> {
    let finite = |low: u8, high: u8| f16::from_le_bytes([low, high]).is_finite();
    match format {
        GgmlDType::Q8_0 => {
            let (blocks, _) = bytes.as_chunks::<34>();
            Some(blocks.iter().all(|block| finite(block[0], block[1])))
        }
        GgmlDType::Q4K => {
            let (blocks, _) = bytes.as_chunks::<144>();
            let both = |block: &[u8; 144]| finite(block[0], block[1]) && finite(block[2], block[3]);
            Some(blocks.iter().all(both))
        }
        _ => None,
    }
}

/// Appends the numbers of whole blocks to `values`.
///
/// # Errors
/// What candle says of a format that it cannot turn into f32.
pub(super) fn decode(
    format: TensorFormat,
    bytes: &[u8],
    values: &mut Vec<f32>,
) -> Result<(), candle_core::Error> {
    match format {
        TensorFormat::Candle(format) => decode_known(format, bytes, values),
        TensorFormat::Table(format) => {
            format.decode(bytes, values);
            Ok(())
        }
    }
}

/// The same for a format that candle knows.
fn decode_known(
    format: GgmlDType,
    bytes: &[u8],
    values: &mut Vec<f32>,
) -> Result<(), candle_core::Error> {
    match format {
        GgmlDType::F32 => {
            let (words, _) = bytes.as_chunks::<4>();
            values.extend(words.iter().map(|word| f32::from_le_bytes(*word)));
        }
        GgmlDType::BF16 => {
            let (words, _) = bytes.as_chunks::<2>();
            let wide = |word: &[u8; 2]| u32::from(u16::from_le_bytes(*word)) << 16;
            values.extend(words.iter().map(|word| f32::from_bits(wide(word))));
        }
        GgmlDType::F16 => {
            // In pieces, through the slice conversion, which uses the CPU's instruction for it.
            const PIECE: usize = 1024;
            let (words, _) = bytes.as_chunks::<2>();
            let mut narrow = [f16::ZERO; PIECE];
            for piece in words.chunks(PIECE) {
                for (narrow, word) in narrow.iter_mut().zip(piece) {
                    *narrow = f16::from_le_bytes(*word);
                }
                let first = values.len();
                values.resize(first + piece.len(), 0.0);
                narrow[..piece.len()].convert_to_f32_slice(&mut values[first..]);
            }
        }
        GgmlDType::Q8_0 => {
            let (blocks, _) = bytes.as_chunks::<34>();
            for [low, high, quants @ ..] in blocks {
                let scale = f16::from_le_bytes([*low, *high]).to_f32();
                values.extend(quants.iter().map(|q| f32::from(q.cast_signed()) * scale));
            }
        }
        other => {
            let count = bytes.len() / other.type_size() * other.block_size();
            let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, other)?;
            let tensor = QTensor::new(storage, count)?.dequantize(&Device::Cpu)?;
            values.extend_from_slice(&tensor.to_vec1::<f32>()?);
        }
    }
    Ok(())
}

/// Numbers quantised at once by candle, which copies them.
const QUANTISED_AT_ONCE: usize = 1 << 20;

/// Whole blocks of `format` with the numbers of the tensor `name`.
///
/// # Errors
/// Why numbers cannot be in it.
pub(crate) fn encode(
    name: &str,
    values: &[f32],
    format: GgmlDType,
) -> Result<Vec<u8>, WeightsError> {
    let refused = |reason: String| WeightsError::Encode {
        name: name.to_owned(),
        reason,
    };
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
                fits.ok_or_else(|| refused("a number is too large for f16".to_owned()))
            })
            .collect::<Result<Vec<[u8; 2]>, _>>()
            .map(Vec::into_flattened),
        GgmlDType::Q8_0 => {
            let (blocks, _) = values.as_chunks::<32>();
            let mut bytes = Vec::with_capacity(blocks.len() * 34);
            for block in blocks {
                let (scale, quants) = q8_0(block);
                if !scale.is_finite() {
                    return Err(refused("a number is too large for Q8_0".to_owned()));
                }
                bytes.extend(scale.to_le_bytes());
                bytes.extend(quants.map(i8::cast_unsigned));
            }
            Ok(bytes)
        }
        other => {
            let candle = |error: candle_core::Error| refused(error.to_string());
            let mut bytes = Vec::new();
            for piece in values.chunks(QUANTISED_AT_ONCE) {
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
