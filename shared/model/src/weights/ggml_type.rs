//! Number formats of tensors in GGUF files.

use candle_core::quantized::GgmlDType;
use derive_more::From;

use self::TensorFormat::{Candle, Table};
use super::table_format::TableFormat;

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, From)]
pub(crate) enum TensorFormat {
    /// A format that candle decodes.
    Candle(GgmlDType),
    /// A format of 4-bit indices into a table, which candle cannot decode.
    Table(TableFormat),
}

impl TensorFormat {
    /// Numbers of a block.
    pub(crate) fn block_size(self) -> usize {
        match self {
            Self::Candle(dtype) => dtype.block_size(),
            Self::Table(table) => table.block_size(),
        }
    }

    /// Bytes of a block.
    fn block_bytes(self) -> usize {
        match self {
            Self::Candle(dtype) => dtype.type_size(),
            Self::Table(table) => table.block_bytes(),
        }
    }
}

/// Formats by their numbers and names in the file format: those that are read, then the names of others, for
/// messages.
const FORMATS: [(u32, &str, Option<TensorFormat>); 33] = [
    (0, "F32", Some(Candle(GgmlDType::F32))),
    (1, "F16", Some(Candle(GgmlDType::F16))),
    (30, "BF16", Some(Candle(GgmlDType::BF16))),
    (8, "Q8_0", Some(Candle(GgmlDType::Q8_0))),
    (2, "Q4_0", Some(Candle(GgmlDType::Q4_0))),
    (3, "Q4_1", Some(Candle(GgmlDType::Q4_1))),
    (6, "Q5_0", Some(Candle(GgmlDType::Q5_0))),
    (7, "Q5_1", Some(Candle(GgmlDType::Q5_1))),
    (10, "Q2_K", Some(Candle(GgmlDType::Q2K))),
    (11, "Q3_K", Some(Candle(GgmlDType::Q3K))),
    (12, "Q4_K", Some(Candle(GgmlDType::Q4K))),
    (13, "Q5_K", Some(Candle(GgmlDType::Q5K))),
    (14, "Q6_K", Some(Candle(GgmlDType::Q6K))),
    (20, "IQ4_NL", Some(Table(TableFormat::Iq4Nl))),
    (23, "IQ4_XS", Some(Table(TableFormat::Iq4Xs))),
    (39, "MXFP4", Some(Table(TableFormat::Mxfp4))),
    (9, "Q8_1", None),
    (15, "Q8_K", None),
    (16, "IQ2_XXS", None),
    (17, "IQ2_XS", None),
    (18, "IQ3_XXS", None),
    (19, "IQ1_S", None),
    (21, "IQ3_S", None),
    (22, "IQ2_S", None),
    (24, "I8", None),
    (25, "I16", None),
    (26, "I32", None),
    (27, "I64", None),
    (28, "F64", None),
    (29, "IQ1_M", None),
    (34, "TQ1_0", None),
    (35, "TQ2_0", None),
    (40, "NVFP4", None),
];

/// The format of that number, if it is one that is read.
pub(crate) fn from_id(id: u32) -> Option<TensorFormat> {
    FORMATS.iter().find(|(number, ..)| *number == id)?.2
}

/// The number of a format that is written.
pub(crate) fn id(dtype: GgmlDType) -> u32 {
    let wanted = Some(dtype.into());
    let found = FORMATS.iter().find(|(.., read)| *read == wanted);
    found.map_or(u32::MAX, |(number, ..)| *number)
}

/// Returns the name of the format of that number, whether it is read or not.
pub(crate) fn name(id: u32) -> String {
    let found = FORMATS.iter().find(|(number, ..)| *number == id);
    found.map_or_else(|| format!("number {id}"), |(_, name, _)| (*name).to_owned())
}

/// The names of all formats that are read, in one line.
pub(crate) fn supported() -> String {
    let read = FORMATS.iter().filter(|(.., format)| format.is_some());
    let names: Vec<&str> = read.map(|(_, name, _)| *name).collect();
    names.join(", ")
}

/// Bytes of `count` numbers, `None` if they do not fill whole blocks or are too many to be counted.
pub(crate) fn size(format: TensorFormat, count: usize) -> Option<usize> {
    let whole = count.is_multiple_of(format.block_size());
    let blocks = whole.then_some(count / format.block_size())?;
    blocks.checked_mul(format.block_bytes())
}
