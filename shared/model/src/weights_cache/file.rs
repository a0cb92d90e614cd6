//! The file that packed matrices are kept in: a header, the matrices where pages begin, and an index of them.
//!
//! The header says how long the file is and where the index lies, and has a digest of both: a file that was cut short,
//! or whose header or index is damaged, is none. The matrices themselves are not read before they are used.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// First bytes of every cache file.
pub(super) const MAGIC: [u8; 8] = *b"OUTRPACK";
/// How this version of the file is laid out.
pub(super) const VERSION: u64 = 1;
/// Matrices begin at multiples of a page, and so of a cache line.
pub(super) const PAGE: u64 = 4096;
/// Bytes of the header: magic, version, length of the file, start and length of the index, digest.
const HEADER: usize = 8 + 4 * 8 + 32;

/// Why a file is not used.
#[derive(Debug, Error)]
pub(crate) enum BadPackedFile {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is no file of packed weights")]
    NoPackedFile,
    #[error("it is of version {found}, expected {VERSION}")]
    Version { found: u64 },
    #[error("it has {found} bytes, its header says {expected}")]
    Length { found: u64, expected: u64 },
    #[error("its header and its index do not match their digest")]
    Digest,
    #[error("its index makes no sense: {0}")]
    Index(#[from] serde_json::Error),
    #[error("it is of other weights: {0}")]
    OtherWeights(String),
}

/// Index of a cache file: the matrices that it holds, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedIndex {
    /// Digest of everything that determines the file's bytes: model, format and layout.
    pub(super) of: String,
    /// Start and length in bytes of each matrix, by what is packed there and how.
    pub(super) matrices: BTreeMap<String, (u64, u64)>,
}

/// The header of a file of `length` bytes with this index.
pub(super) fn header(length: u64, index_at: u64, index: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    let fields = [VERSION, length, index_at, index.len() as u64];
    for (bytes, field) in header[8..40].chunks_exact_mut(8).zip(fields) {
        bytes.copy_from_slice(&field.to_le_bytes());
    }
    let digest = digest(&header[..40], index);
    header[40..].copy_from_slice(&digest);
    header
}

fn digest(fields: &[u8], index: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(fields);
    hash.update(index);
    hash.finalize().into()
}

/// A file whose header and index are right, mapped.
#[derive(Debug)]
pub(crate) struct PackedFile {
    pub(super) map: Arc<Mmap>,
    index: PackedIndex,
}

impl PackedFile {
    /// Maps the file at `path` if it holds what `of` says; `None` if there is none.
    ///
    /// # Errors
    /// Why it is not used.
    pub(super) fn open(path: &Path, of: &str) -> Result<Option<Self>, BadPackedFile> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // SAFETY: the map is only read. Files are written under other names and never changed once they have this
        // one; that nobody else changes them is the operator's part, as of the weights themselves.
        let map = unsafe { Mmap::map(&file) }?;
        let index = Self::index(&map)?;
        if index.of != of {
            return Err(BadPackedFile::OtherWeights(index.of));
        }
        let map = Arc::new(map);
        Ok(Some(Self { map, index }))
    }

    fn index(bytes: &[u8]) -> Result<PackedIndex, BadPackedFile> {
        let header = bytes.get(..HEADER).ok_or(BadPackedFile::NoPackedFile)?;
        if header[..8] != MAGIC {
            return Err(BadPackedFile::NoPackedFile);
        }
        let (fields, _) = header[8..40].as_chunks::<8>();
        let field = |index: usize| u64::from_le_bytes(fields[index]);
        let (version, expected) = (field(0), field(1));
        if version != VERSION {
            return Err(BadPackedFile::Version { found: version });
        }
        let found = bytes.len() as u64;
        if found != expected {
            return Err(BadPackedFile::Length { found, expected });
        }
        let index = range(field(2), field(3)).and_then(|range| bytes.get(range));
        let index = index.ok_or(BadPackedFile::Digest)?;
        if digest(&header[..40], index) != header[40..] {
            return Err(BadPackedFile::Digest);
        }
        Ok(serde_json::from_slice(index)?)
    }

    /// Where the matrix called `key` lies.
    pub(super) fn range(&self, key: &str) -> Option<Range<usize>> {
        let (start, length) = self.index.matrices.get(key)?;
        range(*start, *length)
    }
}

fn range(start: u64, length: u64) -> Option<Range<usize>> {
    let end = start.checked_add(length)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
