//! The GGUF container: metadata, and tensors that are read in place.
//!
//! Versions 2 and 3, little-endian
//! (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>). The file is mapped: opening it reads
//! nothing but the header, and tensors are never copied as a whole. (candle's own reader copies each
//! tensor, panics on an alignment of zero, and does not say which tensor has a type it does not know.)

use std::{collections::BTreeMap, path::Path};

use super::GgufError;
use super::value::{self, GgufMetadata, MetadataValue};
use crate::weights::ggml_type;
use crate::{
    mistaken,
    weights::file::{TensorFile, TensorInfo, mapped},
};

pub(crate) const MAGIC: &[u8; 4] = b"GGUF";
/// Where tensors begin, unless the file says otherwise.
pub(crate) const ALIGNMENT: u64 = 32;
/// Arrays within arrays are allowed, though no model has any.
const MAX_DEPTH: usize = 4;
const MAX_DIMENSIONS: u32 = 4;
/// Most values, and most tensors; models have thousands at most. Each takes some hundred bytes, many times what
/// it may take in the file.
const MAX_ENTRIES: u64 = 1 << 17;
/// Longest name, in bytes, as the format has it.
const MAX_NAME: usize = (1 << 16) - 1;

/// A mapped file.
pub(crate) struct GgufFile {
    pub(crate) metadata: GgufMetadata,
    pub(crate) tensors: TensorFile,
}

impl GgufFile {
    /// Maps the file and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, is no GGUF file, or ends before its last tensor does.
    pub(crate) fn open(path: &Path) -> Result<Self, GgufError> {
        let bytes = mapped(path)?;
        let (metadata, tensors) = header(&bytes).map_err(|reason| GgufError::Malformed {
            path: path.to_owned(),
            reason: mistaken::instead(&bytes).map_or(reason, str::to_owned),
        })?;
        Ok(Self {
            metadata,
            tensors: TensorFile { bytes, tensors },
        })
    }
}

type Header = (GgufMetadata, BTreeMap<String, TensorInfo>);

/// Reads everything before the tensors' contents, and checks that they are all there.
fn header(bytes: &[u8]) -> Result<Header, String> {
    let mut cursor = Cursor {
        bytes,
        at: 0,
        reading: "the header".to_owned(),
    };
    if cursor.take(4)? != MAGIC {
        return Err("it does not begin with GGUF".to_owned());
    }
    match cursor.u32()? {
        2 | 3 => {}
        version if version.swap_bytes() <= 3 => {
            return Err("it is big-endian, little-endian files are read".to_owned());
        }
        version => {
            return Err(format!("it is of version {version}, 2 and 3 are read"));
        }
    }
    let tensor_count = cursor.count("tensors")?;
    let metadata_count = cursor.count("values in its metadata")?;
    let mut metadata = GgufMetadata::default();
    for _ in 0..metadata_count {
        "a name in the metadata".clone_into(&mut cursor.reading);
        let key = cursor.name()?;
        cursor.reading = format!("the metadata {key}");
        let kind = cursor.u32()?;
        metadata.0.insert(key, cursor.value(kind)?);
    }
    let mut infos = Vec::new();
    for _ in 0..tensor_count {
        "a tensor's name".clone_into(&mut cursor.reading);
        let name = cursor.name()?;
        cursor.reading = format!("the description of tensor {name}");
        let dimensions = cursor.u32()?;
        if dimensions > MAX_DIMENSIONS {
            return Err(format!("tensor {name} has {dimensions} dimensions"));
        }
        let mut shape = (0..dimensions)
            .map(|_| cursor.length())
            .collect::<Result<Vec<usize>, _>>()?;
        shape.reverse();
        let type_id = cursor.u32()?;
        infos.push((name, shape, type_id, cursor.length()?));
    }
    let alignment = alignment(&metadata)?;
    let data = cursor.at.next_multiple_of(alignment);
    let mut tensors = BTreeMap::new();
    for (name, shape, type_id, offset) in infos {
        let too_large = || format!("tensor {name} is too large");
        let start = data.checked_add(offset).ok_or_else(too_large)?;
        if !offset.is_multiple_of(alignment) {
            return Err(format!("tensor {name} is not aligned to {alignment} bytes"));
        }
        let (format, format_name) = (ggml_type::from_id(type_id), ggml_type::name(type_id));
        let mut range = 0..0;
        // Others are refused by name when they are asked for.
        if let Some(format) = format {
            let block = format.block_size();
            if let Some(row) = shape.last().filter(|row| !row.is_multiple_of(block)) {
                return Err(format!(
                    "tensor {name} has rows of {row}, its format {format_name} needs a multiple of {block}"
                ));
            }
            let count = shape
                .iter()
                .try_fold(1_usize, |count, size| count.checked_mul(*size));
            let size = count.and_then(|count| ggml_type::size(format, count));
            let end = size.and_then(|size| start.checked_add(size));
            range = start..end.ok_or_else(too_large)?;
        }
        if range.end > bytes.len() {
            let (end, of_file) = (range.end, bytes.len());
            return Err(format!(
                "tensor {name} ends at byte {end}, the file at {of_file}"
            ));
        }
        let info = TensorInfo {
            format,
            format_name,
            shape,
            range,
        };
        if tensors.insert(name.clone(), info).is_some() {
            return Err(format!("there are two tensors {name}"));
        }
    }
    Ok((metadata, tensors))
}

/// Reads what tensors' places are multiples of.
fn alignment(metadata: &GgufMetadata) -> Result<usize, String> {
    let alignment = metadata.whole("general.alignment");
    let alignment = alignment
        .map_err(|error| error.to_string())?
        .unwrap_or(ALIGNMENT);
    if !(alignment.is_power_of_two() && (8..=1 << 20).contains(&alignment)) {
        return Err(format!(
            "general.alignment is {alignment}: it must be a power of two from 8 on"
        ));
    }
    Ok(alignment as usize)
}

/// Reads forward, never beyond the end.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// What is being read, for messages.
    reading: String,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| format!("it ends within {}", self.reading))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<usize, String> {
        let length = self.u64()?;
        usize::try_from(length).map_err(|_| format!("{} is too large", self.reading))
    }

    /// How many `things` there are.
    fn count(&mut self, things: &str) -> Result<u64, String> {
        match self.u64()? {
            count if count <= MAX_ENTRIES => Ok(count),
            count => Err(format!(
                "it has {count} {things}, at most {MAX_ENTRIES} are read"
            )),
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let length = self.length()?;
        if length > MAX_NAME {
            return Err(format!("{} is {length} bytes long", self.reading));
        }
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// A value of type `kind`, which stays as it is.
    fn value(&mut self, kind: u32) -> Result<MetadataValue, String> {
        if kind == value::ARRAY {
            let (kind, len) = (self.u32()?, self.length()?);
            let from = self.at;
            self.pass(kind, len, 1)?;
            return Ok(MetadataValue::array(kind, len, &self.bytes[from..self.at]));
        }
        let from = self.at;
        self.pass(kind, 1, 0)?;
        Ok(MetadataValue::one(kind, &self.bytes[from..self.at]))
    }

    /// Goes past `len` items of type `kind` of an array that `depth - 1` others are around.
    fn pass(&mut self, kind: u32, len: usize, depth: usize) -> Result<(), String> {
        if let Some(width) = value::width(kind) {
            self.take(len.saturating_mul(width))?;
            return Ok(());
        }
        for _ in 0..len {
            match kind {
                value::STRING => {
                    let length = self.length()?;
                    self.take(length)?;
                }
                value::ARRAY if depth < MAX_DEPTH => {
                    let (kind, len) = (self.u32()?, self.length()?);
                    self.pass(kind, len, depth + 1)?;
                }
                other => {
                    return Err(format!("{} is of the unknown type {other}", self.reading));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
