//! A folder that packed matrices are kept in: made once, and mapped by every process after that.
//!
//! A file is named by what decides its bytes, so that it is of these weights and this version or not found. It is
//! written under another name first; of several that write it at once the last gives it its name, and all have written
//! the same.

mod file;
mod writer;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::Mmap;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use self::file::PackedFile;
use self::writer::PackedWriter;

/// Extension of a cache file's name.
const ENDING: &str = "packed";

/// The file of a model's matrices in one format.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    path: PathBuf,
    /// Digest of everything that determines the file's bytes: model, format and layout.
    of: String,
}

/// Where a model's matrices come from, or go to, while it is loaded.
#[derive(Debug)]
pub(crate) enum PackedStore {
    /// A file, and whether something was not found there.
    Kept(PackedFile, AtomicBool),
    /// A file that is being written.
    Begun(Mutex<PackedWriter>),
}

impl CacheEntry {
    /// In `folder`, of weights with this fingerprint, packed for `kernels` in the layout of that number.
    pub(crate) fn new(folder: &Path, fingerprint: &str, kernels: &str, layout: u32) -> Self {
        let order = if cfg!(target_endian = "little") {
            "little"
        } else {
            "big"
        };
        let of = format!("{fingerprint} {kernels} layout {layout} {order}-endian");
        let digest: [u8; 32] = Sha256::digest(&of).into();
        let digest = digest
            .first_chunk()
            .map_or(0, |first| u64::from_be_bytes(*first));
        Self {
            path: folder.join(format!("{fingerprint}-{digest:016x}.{ENDING}")),
            of,
        }
    }

    /// The file, if it is there and right. One that is not is warned of.
    pub(crate) fn open(&self) -> Option<PackedStore> {
        match PackedFile::open(&self.path, &self.of) {
            Ok(file) => Some(PackedStore::Kept(file?, AtomicBool::new(false))),
            Err(error) => {
                let file = self.path.display();
                tracing::warn!(%file, "packed weights are made anew: {error}");
                None
            }
        }
    }

    /// Begins the file; none where the folder does not let it, which is warned of.
    pub(crate) fn create(&self) -> Option<PackedStore> {
        match PackedWriter::create(&self.path, &self.of) {
            Ok(writer) => Some(PackedStore::Begun(Mutex::new(writer))),
            Err(error) => {
                self.warn(&error);
                None
            }
        }
    }

    /// Gives the file its name, and opens it; none where not all of it could be written, which is warned of.
    pub(crate) fn finish(&self, begun: PackedStore) -> Option<PackedStore> {
        let PackedStore::Begun(writer) = begun else {
            return Some(begun);
        };
        if let Err(error) = writer.into_inner().finish() {
            self.warn(&error);
            return None;
        }
        tracing::info!(file = %self.path.display(), "packed weights are kept");
        self.open()
    }

    fn warn(&self, error: &std::io::Error) {
        let folder = self.path.parent().unwrap_or(&self.path).display();
        tracing::warn!(
            %folder,
            "weights_cache cannot be written, so the weights are packed at every start: {error}; name a folder that this \
             process may write, on a disk with room for them, or leave weights_cache empty"
        );
    }
}

impl PackedStore {
    /// Where the matrix called `key` lies, if it is kept.
    pub(crate) fn find(&self, key: &str) -> Option<(&Arc<Mmap>, Range<usize>)> {
        match self {
            Self::Kept(file, _) => Some((&file.map, file.range(key)?)),
            Self::Begun(_) => None,
        }
    }

    /// Keeps the matrix called `key`, which was not found.
    pub(crate) fn keep(&self, key: &str, bytes: &[u8]) {
        match self {
            Self::Kept(_, is_lacking) => is_lacking.store(true, Ordering::Relaxed),
            Self::Begun(writer) => writer.lock().append(key, bytes),
        }
    }

    /// Whether something was not found that a file should have.
    pub(crate) fn is_lacking(&self) -> bool {
        matches!(self, Self::Kept(_, is_lacking) if is_lacking.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
