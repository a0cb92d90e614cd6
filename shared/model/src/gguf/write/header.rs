//! What stands before the tensors' contents.

use candle_core::quantized::GgmlDType;

use crate::gguf::{
    container::MAGIC,
    ggml_type,
    value::{Metadata, Value},
};

/// Tensors begin at multiples of it, from the beginning of the contents.
pub(in crate::gguf) const ALIGNMENT: usize = crate::gguf::container::ALIGNMENT as usize;
const VERSION: u32 = 3;

/// A tensor to be written.
pub(in crate::gguf) struct Entry {
    name: String,
    shape: Vec<usize>,
    format: GgmlDType,
}

impl Entry {
    pub(in crate::gguf) fn new(name: &str, shape: &[usize], format: GgmlDType) -> Self {
        Self {
            name: name.to_owned(),
            shape: shape.to_vec(),
            format,
        }
    }

    fn bytes(&self) -> usize {
        ggml_type::size(self.format, self.shape.iter().product()).unwrap_or(0)
    }
}

/// Zeros that follow a tensor of `bytes` bytes.
pub(in crate::gguf) fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT) - bytes
}

/// Bytes of all contents, padding included.
pub(super) fn data_bytes(entries: &[Entry]) -> u64 {
    let padded = entries
        .iter()
        .map(|entry| entry.bytes().next_multiple_of(ALIGNMENT) as u64);
    padded.sum()
}

/// The header, up to where the contents begin.
pub(in crate::gguf) fn bytes(metadata: &Metadata, entries: &[Entry]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend((entries.len() as u64).to_le_bytes());
    out.extend((metadata.0.len() as u64).to_le_bytes());
    for (key, value) in &metadata.0 {
        string(&mut out, key);
        out.extend(value.kind().to_le_bytes());
        put(&mut out, value);
    }
    let mut offset = 0_u64;
    for entry in entries {
        string(&mut out, &entry.name);
        out.extend((entry.shape.len() as u32).to_le_bytes());
        for size in entry.shape.iter().rev() {
            out.extend((*size as u64).to_le_bytes());
        }
        out.extend(ggml_type::id(entry.format).to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += entry.bytes().next_multiple_of(ALIGNMENT) as u64;
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(n) => out.extend(n.to_le_bytes()),
        Value::I8(n) => out.extend(n.to_le_bytes()),
        Value::U16(n) => out.extend(n.to_le_bytes()),
        Value::I16(n) => out.extend(n.to_le_bytes()),
        Value::U32(n) => out.extend(n.to_le_bytes()),
        Value::I32(n) => out.extend(n.to_le_bytes()),
        Value::F32(n) => out.extend(n.to_le_bytes()),
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::String(text) => string(out, text),
        Value::Array(array) => {
            out.extend(array.kind.to_le_bytes());
            out.extend((array.items.len() as u64).to_le_bytes());
            for item in &array.items {
                put(out, item);
            }
        }
        Value::U64(n) => out.extend(n.to_le_bytes()),
        Value::I64(n) => out.extend(n.to_le_bytes()),
        Value::F64(n) => out.extend(n.to_le_bytes()),
    }
}
