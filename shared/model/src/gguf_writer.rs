//! Writes a checkpoint as a GGUF file that llama.cpp loads, too.

mod config;
mod error;
pub(crate) mod header;
mod tokenizer;
mod verify;

use std::{io::Write, ops::ControlFlow};

use candle_core::quantized::GgmlDType;
use derive_more::From;
use thiserror::Error;

use self::header::{MetadataFields, TensorEntry};
pub use self::{error::GgufWriteError, verify::verify};
use crate::checkpoint::Checkpoint;
use crate::decoder::tensors::{TensorNames, tensors};
use crate::gguf::rope_factors;
use crate::progress::{WorkKind, WorkProgress};
use crate::weights::{NamedTensor, TensorLayout, Weights, encode, rotary_source};

/// What matrices are written in, with its number in `general.file_type`, by which llama.cpp names what is mostly in a
/// file. Vectors, such as norms and biases, are always f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
#[strum(parse_err_ty = UnknownFileFormat, parse_err_fn = UnknownFileFormat::from)]
pub enum FileFormat {
    /// Full precision.
    F32 = 0,
    /// Half precision.
    F16 = 1,
    /// 8-bit blocks of 32; f32 for matrices whose rows are no multiple of 32.
    Q8_0 = 7,
    /// 4-bit blocks of 256 (4.5 bits a weight with their scales); Q8_0 for matrices whose rows are no
    /// multiple of 256.
    #[strum(serialize = "q4_k")]
    Q4K = 14,
}

/// No file format has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error, From)]
#[from(&str)]
#[error("no file format {0:?}: q8_0, q4_k, f16 and f32 are known")]
pub struct UnknownFileFormat(pub String);

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenGguf {
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of tensors.
    pub tensors: usize,
    /// The other formats that matrices are in because of their sizes, and how many are.
    pub fallbacks: Vec<(FileFormat, usize)>,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Q8_0, Self::Q4K, Self::F16, Self::F32];

    fn of_blocks(self) -> GgmlDType {
        match self {
            Self::F32 => GgmlDType::F32,
            Self::F16 => GgmlDType::F16,
            Self::Q8_0 => GgmlDType::Q8_0,
            Self::Q4K => GgmlDType::Q4K,
        }
    }

    /// The format of a matrix of that many columns.
    fn of_matrix(self, columns: usize) -> Self {
        let fits = |format: &Self| columns.is_multiple_of(format.of_blocks().block_size());
        [self, Self::Q8_0]
            .into_iter()
            .find(fits)
            .unwrap_or(Self::F32)
    }

    /// The format of a tensor of that shape.
    fn of(self, shape: &[usize]) -> GgmlDType {
        match shape {
            [_, columns] => self.of_matrix(*columns).of_blocks(),
            _ => GgmlDType::F32,
        }
    }

    /// The other formats of matrices of these shapes, and how many are in each.
    fn fallbacks<'a>(self, shapes: impl Iterator<Item = &'a [usize]>) -> Vec<(Self, usize)> {
        let of_matrix = |shape: &[usize]| match shape {
            [_, columns] => Some(self.of_matrix(*columns)),
            _ => None,
        };
        let used: Vec<Self> = shapes.filter_map(of_matrix).collect();
        let others = Self::ALL.into_iter().filter(|format| *format != self);
        others
            .map(|format| (format, used.iter().filter(|of| **of == format).count()))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// Writes `checkpoint` to `out` as GGUF version 3, under the name `name`.
///
/// No more than one tensor is in memory at a time. `progress` is told before each of them, and stops
/// the writing with [`ControlFlow::Break`].
///
/// # Errors
/// If the model or its tokenizer has no form in GGUF, a tensor is missing or broken, or `out` fails;
/// what was written until then is of no use.
pub fn write(
    checkpoint: &Checkpoint,
    name: &str,
    format: FileFormat,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(WorkProgress<'_>) -> ControlFlow<()>,
) -> Result<WrittenGguf, GgufWriteError> {
    let config = checkpoint.config();
    let mut metadata = MetadataFields::default();
    config::write(checkpoint, name, format as u32, &mut metadata)?;
    tokenizer::write(checkpoint, &mut metadata)?;

    let rope = config.rope.as_ref();
    let factors = rope.map_or_else(Vec::new, |rope| rope_factors::write(rope, config.head_dim));
    let tensors = tensors(config, TensorNames::of(checkpoint.weights()));
    let entries = tensors.iter().map(|tensor| {
        let format = format.of(&tensor.shape);
        (tensor.gguf.as_str(), tensor.shape.clone(), format)
    });
    let of_factors = factors
        .iter()
        .map(|(name, factors)| (*name, vec![factors.len()], GgmlDType::F32));
    let entries: Vec<TensorEntry<'_>> = of_factors.chain(entries).collect();
    let (header, data_bytes) = header::bytes(&metadata, &entries);
    let total_bytes = header.len() as u64 + data_bytes;
    let mut done_bytes = header::padded(out, &header)?;
    for (_, factors) in &factors {
        let bytes: Vec<u8> = factors.iter().flat_map(|n| n.to_le_bytes()).collect();
        done_bytes += header::padded(out, &bytes)?;
    }
    for tensor in &tensors {
        let at = WorkProgress {
            work: WorkKind::Writing,
            name: &tensor.gguf,
            done_bytes,
            total_bytes,
        };
        if progress(at).is_break() {
            return Err(GgufWriteError::Stopped);
        }
        let bytes = contents(checkpoint.weights(), tensor, format.of(&tensor.shape))?;
        done_bytes += header::padded(out, &bytes)?;
    }
    out.flush()?;
    Ok(WrittenGguf {
        bytes: done_bytes,
        tensors: entries.len(),
        fallbacks: format.fallbacks(tensors.iter().map(|tensor| tensor.shape.as_slice())),
    })
}

/// The contents of a tensor in `format`, as llama.cpp lays it out.
///
/// A tensor that is stored in that format already is taken as it is.
fn contents(
    weights: &Weights,
    tensor: &NamedTensor,
    format: GgmlDType,
) -> Result<Vec<u8>, GgufWriteError> {
    let name = &tensor.hugging_face;
    let stored = match tensor.layout {
        TensorLayout::PlusOne => None,
        _ => weights.blocks(name, &tensor.shape, format)?,
    };
    let bytes = if let Some(bytes) = stored {
        bytes
    } else {
        let mut values = weights.tensor(name, &tensor.shape)?;
        if tensor.layout == TensorLayout::PlusOne {
            for value in &mut values {
                *value += 1.0;
            }
        }
        encode(name, &values, format)?
    };
    let TensorLayout::RotaryPairs { heads, dims } = tensor.layout else {
        return Ok(bytes);
    };
    let rows = tensor.shape[0];
    let row = bytes.len() / rows;
    let mut ordered = Vec::with_capacity(bytes.len());
    for at in 0..rows {
        let source = rotary_source(at, rows, heads, dims);
        ordered.extend_from_slice(&bytes[source * row..][..row]);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests;
