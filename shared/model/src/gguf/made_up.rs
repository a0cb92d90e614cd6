//! Files for tests.

use std::io::Write;

use candle_core::quantized::GgmlDType;
use tempfile::NamedTempFile;

use super::{
    container::Container,
    error::GgufError,
    value::{Metadata, Value},
    write::header::{self, Entry},
};

/// A tensor: name, shape, format and contents.
pub(crate) type Tensor<'a> = (&'a str, &'a [usize], GgmlDType, Vec<u8>);

/// The bytes of a file.
pub(crate) fn bytes(metadata: &Metadata, tensors: &[Tensor<'_>]) -> Vec<u8> {
    let entries: Vec<Entry> = tensors
        .iter()
        .map(|(name, shape, format, _)| Entry::new(name, shape, *format))
        .collect();
    let mut bytes = header::bytes(metadata, &entries);
    for (.., contents) in tensors {
        bytes.extend(contents);
        bytes.resize(bytes.len().next_multiple_of(header::ALIGNMENT), 0);
    }
    bytes
}

/// A file with these bytes.
pub(crate) fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Opens a file with these bytes.
pub(crate) fn open(bytes: &[u8]) -> Result<Container, GgufError> {
    Container::open(file(bytes).path())
}

/// The message of the error, without the file's name.
pub(crate) fn refused(bytes: &[u8]) -> String {
    let error = open(bytes).err().expect("refused").to_string();
    error
        .split_once("not a GGUF file: ")
        .map_or(error.clone(), |(_, reason)| reason.to_owned())
}

pub(crate) fn metadata(entries: &[(&str, Value)]) -> Metadata {
    let entries = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()));
    Metadata(entries.collect())
}

pub(crate) fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// f32 numbers as bytes.
pub(crate) fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}
