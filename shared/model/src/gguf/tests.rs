//! Files for tests.

use std::io::Write;

use candle_core::quantized::GgmlDType;
use tempfile::NamedTempFile;

use super::GgufError;
use super::container::GgufFile;
use super::value::{GgufMetadata, MetadataValue, STRING};
use crate::gguf_writer::header;
use crate::gguf_writer::header::{MetadataField, MetadataFields};

/// A tensor: name, shape, format and contents.
pub(crate) type Tensor<'a> = (&'a str, &'a [usize], GgmlDType, Vec<u8>);

/// The bytes of a file.
pub(in crate::gguf) fn bytes(metadata: &MetadataFields, tensors: &[Tensor<'_>]) -> Vec<u8> {
    let entries = tensors
        .iter()
        .map(|(name, shape, format, _)| (*name, shape.to_vec(), *format));
    let (mut bytes, _) = header::bytes(metadata, &entries.collect::<Vec<_>>());
    for (.., contents) in tensors {
        header::padded(&mut bytes, contents).unwrap();
    }
    bytes
}

/// Opens a file with these bytes.
pub(crate) fn open(bytes: &[u8]) -> Result<GgufFile, GgufError> {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    GgufFile::open(file.path())
}

/// The bytes of a file with these tensors alone.
pub(crate) fn file(tensors: &[Tensor<'_>]) -> Vec<u8> {
    bytes(&MetadataFields::default(), tensors)
}

/// A file with these tensors alone.
pub(crate) fn tensors(tensors: &[Tensor<'_>]) -> GgufFile {
    open(&file(tensors)).unwrap()
}

/// The message of the error, without the file's name.
pub(crate) fn refused(bytes: &[u8]) -> String {
    let error = open(bytes).err().expect("refused").to_string();
    error
        .split_once("not a GGUF file: ")
        .map_or(error.clone(), |(_, reason)| reason.to_owned())
}

pub(crate) fn metadata(entries: &[(&str, MetadataValue)]) -> GgufMetadata {
    let entries = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()));
    GgufMetadata(entries.collect())
}

pub(crate) fn text(text: &str) -> MetadataValue {
    let length = (text.len() as u64).to_le_bytes();
    MetadataValue::one(STRING, &[&length[..], text.as_bytes()].concat())
}

pub(crate) fn whole(number: i64) -> MetadataValue {
    MetadataValue::one(11, &number.to_le_bytes())
}

pub(crate) fn real(number: f64) -> MetadataValue {
    MetadataValue::one(12, &number.to_le_bytes())
}

pub(crate) fn flag(value: bool) -> MetadataValue {
    MetadataValue::one(7, &[value.into()])
}

/// An array as it is read from a file.
pub(in crate::gguf) fn array<T: MetadataField>(items: Vec<T>) -> MetadataValue {
    let mut fields = MetadataFields::default();
    fields.insert("items", items);
    let file = open(&bytes(&fields, &[])).unwrap();
    file.metadata.0["items"].clone()
}

pub(crate) fn strings(items: &[&str]) -> MetadataValue {
    array(items.to_vec())
}

pub(crate) fn wholes(items: &[i32]) -> MetadataValue {
    array(items.to_vec())
}

/// f32 numbers as bytes.
pub(crate) fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}
