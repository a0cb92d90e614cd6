//! A file of tensors, which are read where they lie.

use std::{
    collections::BTreeMap,
    fs, io,
    ops::{Deref, Range},
    path::{Path, PathBuf},
};

use candle_core::quantized::GgmlDType;
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use thiserror::Error;

use super::ggml_type::TensorFormat;

/// The bytes of a file, mapped or in memory.
pub(crate) type FileBytes = Box<dyn Deref<Target = [u8]> + Send + Sync>;

/// A file of a model that the system does not let be read.
#[derive(Debug, Error)]
#[error("{} cannot be read", path.display())]
pub struct UnreadableFile {
    path: PathBuf,
    source: io::Error,
}

impl UnreadableFile {
    /// The file at `path`, with what the system said.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

/// Maps the file at `path`.
pub(crate) fn mapped(path: &Path) -> Result<FileBytes, UnreadableFile> {
    // SAFETY: the map is only read; that nobody rewrites a checkpoint in place while it is served
    // is the operator's part, as for every program that maps weights.
    let map = fs::File::open(path).and_then(|file| unsafe { Mmap::map(&file) });
    Ok(Box::new(map.map_err(UnreadableFile::at(path))?))
}

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorInfo {
    /// `None` if numbers of that format are not read.
    pub(crate) format: Option<TensorFormat>,
    /// What the file calls the format.
    pub(crate) format_name: String,
    /// Outermost dimension first.
    pub(crate) shape: Vec<usize>,
    /// Where it lies in the file; may be empty if the format is not known.
    pub(crate) range: Range<usize>,
}

/// A file and the tensors in it, by the names they have there.
pub(crate) struct TensorFile {
    pub(crate) bytes: FileBytes,
    /// Ranges lie within the bytes.
    pub(crate) tensors: BTreeMap<String, TensorInfo>,
}

impl TensorFile {
    /// The tensors of a safetensors file.
    ///
    /// # Errors
    /// If it is truncated, or no such file.
    pub(crate) fn safetensors(bytes: FileBytes) -> Result<Self, SafeTensorError> {
        let (header_bytes, header) = SafeTensors::read_metadata(&bytes)?;
        // The header's length comes before it.
        let data = size_of::<u64>() + header_bytes;
        let infos = header.tensors().into_iter().map(|(name, info)| {
            let (start, end) = info.data_offsets;
            let info = TensorInfo {
                format: match info.dtype {
                    Dtype::F32 => Some(GgmlDType::F32.into()),
                    Dtype::F16 => Some(GgmlDType::F16.into()),
                    Dtype::BF16 => Some(GgmlDType::BF16.into()),
                    _ => None,
                },
                format_name: format!("{:?}", info.dtype),
                shape: info.shape.clone(),
                range: data + start..data + end,
            };
            (name, info)
        });
        let tensors = infos.collect();
        Ok(Self { bytes, tensors })
    }

    /// The tensor of that name, and its bytes.
    pub(crate) fn get(&self, name: &str) -> Option<(&TensorInfo, &[u8])> {
        let info = self.tensors.get(name)?;
        Some((info, &self.bytes[info.range.clone()]))
    }

    /// All tensors, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &TensorInfo, &[u8])> {
        let bytes = |info: &TensorInfo| &self.bytes[info.range.clone()];
        let tensors = self.tensors.iter();
        tensors.map(move |(name, info)| (name.as_str(), info, bytes(info)))
    }
}

/// The format that most numbers of `files` are in, as they call it; empty without tensors. How many bytes they take is
/// not known of every format.
#[cfg(feature = "llama-cpp")]
pub(crate) fn main_format(files: &[TensorFile]) -> &str {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for info in files.iter().flat_map(|file| file.tensors.values()) {
        let sizes = info.shape.iter();
        // Shapes of formats that are not known were not checked.
        let count = sizes.fold(1_usize, |count, size| count.saturating_mul(*size));
        let sum = numbers.entry(&info.format_name).or_default();
        *sum = sum.saturating_add(count);
    }
    let most = numbers.into_iter().max_by_key(|(_, count)| *count);
    most.map_or("", |(format, _)| format)
}

/// Returns what the entry `name` of a safetensors file's metadata holds, which is JSON.
///
/// # Errors
/// What is wrong with the file or the entry, in words.
pub(crate) fn json_entry(bytes: &[u8], name: &str) -> Result<serde_json::Value, String> {
    let read = SafeTensors::read_metadata(bytes);
    let (_, metadata) = read.map_err(|error| error.to_string())?;
    let entries = metadata.metadata().as_ref();
    let entry = entries.and_then(|entries| entries.get(name));
    let entry = entry.ok_or_else(|| format!("its metadata has no entry {name}"))?;
    serde_json::from_str(entry).map_err(|error| format!("{name}: {error}"))
}
