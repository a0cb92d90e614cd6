//! What stands before the tensors' contents.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use candle_core::quantized::GgmlDType;

use crate::gguf::container::MAGIC;
use crate::weights::ggml_type;

/// Tensors begin at multiples of it, from the beginning of the contents.
pub(crate) const ALIGNMENT: usize = crate::gguf::container::ALIGNMENT as usize;
const VERSION: u32 = 3;

/// A tensor to be written: name, shape and format.
pub(crate) type TensorEntry<'a> = (&'a str, Vec<usize>, GgmlDType);

/// What metadata can be.
pub(crate) trait MetadataField: Sized {
    /// The type's number in the file format.
    const KIND: u32;

    fn put(self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($kind:literal: $number:ty),*) => {$(
        impl MetadataField for $number {
            const KIND: u32 = $kind;

            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
        }
    )*};
}

numbers!(4: u32, 5: i32, 6: f32, 12: f64);

impl MetadataField for bool {
    const KIND: u32 = 7;

    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
}

impl MetadataField for &str {
    const KIND: u32 = 8;

    fn put(self, out: &mut Vec<u8>) {
        out.extend((self.len() as u64).to_le_bytes());
        out.extend(self.as_bytes());
    }
}

impl MetadataField for String {
    const KIND: u32 = 8;

    fn put(self, out: &mut Vec<u8>) {
        self.as_str().put(out);
    }
}

impl<T: MetadataField> MetadataField for Vec<T> {
    const KIND: u32 = 9;

    fn put(self, out: &mut Vec<u8>) {
        T::KIND.put(out);
        out.extend((self.len() as u64).to_le_bytes());
        for item in self {
            item.put(out);
        }
    }
}

/// Metadata as it is written: by its name, the number of its type and its bytes.
#[derive(Default)]
pub(crate) struct MetadataFields(BTreeMap<String, Vec<u8>>);

impl MetadataFields {
    pub(crate) fn insert<T: MetadataField>(&mut self, key: impl Into<String>, value: T) {
        let mut bytes = T::KIND.to_le_bytes().to_vec();
        value.put(&mut bytes);
        self.0.insert(key.into(), bytes);
    }
}

/// The header, up to where the contents begin, and the bytes of all contents, padding included.
pub(crate) fn bytes(metadata: &MetadataFields, entries: &[TensorEntry<'_>]) -> (Vec<u8>, u64) {
    let mut out = MAGIC.to_vec();
    VERSION.put(&mut out);
    out.extend((entries.len() as u64).to_le_bytes());
    out.extend((metadata.0.len() as u64).to_le_bytes());
    for (key, value) in &metadata.0 {
        key.as_str().put(&mut out);
        out.extend(value);
    }
    let mut offset = 0_u64;
    for (name, shape, format) in entries {
        name.put(&mut out);
        (shape.len() as u32).put(&mut out);
        for size in shape.iter().rev() {
            out.extend((*size as u64).to_le_bytes());
        }
        ggml_type::id(*format).put(&mut out);
        out.extend(offset.to_le_bytes());
        let size = ggml_type::size((*format).into(), shape.iter().product()).unwrap_or(0);
        offset += size.next_multiple_of(ALIGNMENT) as u64;
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    (out, offset)
}

/// Writes `bytes` and the zeros that follow them, and returns how many that are.
pub(crate) fn padded(out: &mut dyn Write, bytes: &[u8]) -> io::Result<u64> {
    let whole = bytes.len().next_multiple_of(ALIGNMENT);
    out.write_all(bytes)?;
    out.write_all(&[0; ALIGNMENT][..whole - bytes.len()])?;
    Ok(whole as u64)
}
