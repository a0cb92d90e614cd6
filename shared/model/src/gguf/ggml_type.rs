//! Number formats of tensors in GGUF files.

use candle_core::quantized::GgmlDType;

/// Formats that are read, with their numbers and names in the file format.
const READ: [(u32, &str, GgmlDType); 13] = [
    (0, "F32", GgmlDType::F32),
    (1, "F16", GgmlDType::F16),
    (30, "BF16", GgmlDType::BF16),
    (8, "Q8_0", GgmlDType::Q8_0),
    (2, "Q4_0", GgmlDType::Q4_0),
    (3, "Q4_1", GgmlDType::Q4_1),
    (6, "Q5_0", GgmlDType::Q5_0),
    (7, "Q5_1", GgmlDType::Q5_1),
    (10, "Q2_K", GgmlDType::Q2K),
    (11, "Q3_K", GgmlDType::Q3K),
    (12, "Q4_K", GgmlDType::Q4K),
    (13, "Q5_K", GgmlDType::Q5K),
    (14, "Q6_K", GgmlDType::Q6K),
];

/// Names of formats that are not read, for messages.
const OTHERS: [(u32, &str); 20] = [
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

/// The format of that number, if it is one that is read.
pub(crate) fn from_id(id: u32) -> Option<GgmlDType> {
    let found = READ.iter().find(|(number, ..)| *number == id);
    found.map(|(.., dtype)| *dtype)
}

/// The number of a format that is read.
pub(crate) fn id(dtype: GgmlDType) -> u32 {
    let found = READ.iter().find(|(.., read)| *read == dtype);
    found.map_or(u32::MAX, |(number, ..)| *number)
}

/// What the format of that number is called, whether it is read or not.
pub(crate) fn name(id: u32) -> String {
    let read = READ.iter().map(|(number, name, _)| (*number, *name));
    read.chain(OTHERS)
        .find(|(number, _)| *number == id)
        .map_or_else(|| format!("number {id}"), |(_, name)| name.to_owned())
}

/// The names of all formats that are read, in one line.
pub(crate) fn supported() -> String {
    READ.map(|(_, name, _)| name).join(", ")
}

/// Bytes of `count` numbers, `None` if they do not fill whole blocks or are too many to be counted.
pub(crate) fn size(dtype: GgmlDType, count: usize) -> Option<usize> {
    let whole = count.is_multiple_of(dtype.block_size());
    let blocks = whole.then_some(count / dtype.block_size())?;
    blocks.checked_mul(dtype.type_size())
}
