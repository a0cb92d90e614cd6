//! Writing a file of packed matrices, matrix by matrix, under a name of its own until it is whole.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::{self, PAGE, PackedIndex};

/// Extension of a file that is still being written.
const UNFINISHED: &str = "unfinished";

/// A file that is being written. Dropped before it is finished it is gone.
#[derive(Debug)]
pub(crate) struct PackedWriter {
    file: File,
    /// Its temporary path; none once it has its own name.
    at: Option<PathBuf>,
    /// Its name when it is whole.
    path: PathBuf,
    index: PackedIndex,
    written: u64,
    failed: Option<io::Error>,
}

impl PackedWriter {
    /// Begins the file at `path`, of what `of` says. What others began and never finished is removed.
    pub(super) fn create(path: &Path, of: &str) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        remove_unfinished(path);
        let mut writer = loop {
            let writer = Self::named(path, of)?;
            // A process that finds the file locked knows that it is being written. One that found it before it was
            // locked has removed it, and then another is begun.
            writer.file.lock()?;
            if writer.at.as_ref().is_some_and(|at| at.exists()) {
                break writer;
            }
        };
        writer.file.seek(SeekFrom::Start(PAGE))?;
        Ok(writer)
    }

    /// A file that nobody else writes.
    fn named(path: &Path, of: &str) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let ending = format!("{}-{number}.{UNFINISHED}", std::process::id());
        let at = path.with_added_extension(ending);
        let file = OpenOptions::new().write(true).create_new(true).open(&at)?;
        let index = PackedIndex {
            of: of.to_owned(),
            ..PackedIndex::default()
        };
        Ok(Self {
            file,
            at: Some(at),
            path: path.to_owned(),
            index,
            written: PAGE,
            failed: None,
        })
    }

    /// Writes the matrix called `key`. A failure is told by [`PackedWriter::finish`].
    pub(super) fn append(&mut self, key: &str, bytes: &[u8]) {
        if self.failed.is_none() && !self.index.matrices.contains_key(key) {
            let place = (self.written, bytes.len() as u64);
            self.failed = self.write(bytes).err();
            self.index.matrices.insert(key.to_owned(), place);
        }
    }

    /// Has it fail.
    #[cfg(test)]
    pub(super) fn fail(&mut self, error: io::Error) {
        self.failed = Some(error);
    }

    /// Writes `bytes`, and goes on where the next page begins.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.written = (self.written + bytes.len() as u64).next_multiple_of(PAGE);
        self.file.seek(SeekFrom::Start(self.written)).map(drop)
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If not all of it could be written; it is gone then.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let index = serde_json::to_vec(&self.index)?;
        let length = self.written + index.len() as u64;
        let header = file::header(length, self.written, &index);
        self.file.write_all(&index)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        // Its bytes are there before its name is: nobody checks them later.
        self.file.sync_all()?;
        if let Some(at) = self.at.as_ref() {
            fs::rename(at, &self.path)?;
        }
        self.at = None;
        Ok(())
    }
}

impl Drop for PackedWriter {
    fn drop(&mut self) {
        if let Some(at) = &self.at {
            // It takes room and does no other harm, and the next who writes tries again.
            let _ = fs::remove_file(at);
        }
    }
}

/// Removes files for `path` that processes began which are no more.
fn remove_unfinished(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let is_unfinished = |path: &PathBuf| {
        let is_of = path.file_name().and_then(OsStr::to_str).zip(name.to_str());
        is_of.is_some_and(|(found, name)| found.starts_with(name))
            && path.extension().is_some_and(|ending| ending == UNFINISHED)
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for path in paths.filter(is_unfinished) {
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            // Still locked, so that who has just begun it sees that it is gone.
            let _ = fs::remove_file(path);
        }
    }
}
