//! The file that is written: under another name beside its place until it is whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::gguf_writer::GgufWriteError;
use tempfile::{NamedTempFile, TempPath};

/// Large enough that writing is not by small pieces, small enough for every machine.
const BUFFER: usize = 1 << 20;

/// A file on its way to `place`; removed unless [`GgufDestination::keep`] is called.
#[derive(Debug)]
pub(super) struct GgufDestination {
    pub(super) file: BufWriter<NamedTempFile>,
    place: PathBuf,
    replace: bool,
}

impl GgufDestination {
    /// Begins a file beside `place`.
    pub(super) fn create(place: &Path, replace: bool) -> anyhow::Result<Self> {
        if place.is_dir() {
            bail!("'{}' is a folder, name a file", place.display());
        }
        if place.exists() && !place.is_file() {
            bail!("'{}' is no regular file, name one", place.display());
        }
        if place.exists() && !replace {
            bail!(
                "'{}' is there already, --force replaces it",
                place.display()
            );
        }
        let file = begin(place)?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER, file),
            place: place.to_owned(),
            replace,
        })
    }

    /// Returns where the file is for now.
    pub(super) fn path(&self) -> &Path {
        self.file.get_ref().path()
    }

    /// Says of a full disk that it is full.
    pub(super) fn explain(&self, error: GgufWriteError) -> anyhow::Error {
        let full = matches!(&error, GgufWriteError::Io(error)
            if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded));
        let error = anyhow::Error::new(error);
        if full {
            let place = self.place.display();
            return error.context(format!(
                "DST: no space is left for '{place}': free some, or write elsewhere"
            ));
        }
        error
    }

    /// Puts the file in its place.
    pub(super) fn keep(self) -> anyhow::Result<()> {
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        let place = &self.place;
        let kept = if self.replace {
            file.persist(place)
        } else {
            file.persist_noclobber(place)
        };
        kept.with_context(|| format!("'{}' cannot be put in its place", place.display()))?;
        Ok(())
    }
}

/// Returns the unfinished file of `place`, empty and locked: whoever else writes to the same place is told. What a
/// killed run left of it is overwritten.
fn begin(place: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let path = folder.join(format!(".{name}.part"));
    let failed = || format!("'{}' cannot be written to", folder.display());
    loop {
        // Nothing but a file of ours is emptied, and no pipe is waited for.
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            bail!("'{}' is in the way, and no regular file", path.display());
        }
        let mut options = File::options();
        let opened = options.create(true).truncate(false).write(true).read(true);
        let file = opened.open(&path).with_context(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "'{}' is being written by another process, which has '{}' open: wait for it, or name another \
                 file",
                place.display(),
                path.display()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
        // Another run may have put the file in its place, or removed it, before it was locked here.
        if is_at(&file, &path) {
            file.set_len(0).with_context(failed)?;
            let path = TempPath::try_from_path(path).with_context(failed)?;
            return Ok(NamedTempFile::from_parts(file, path));
        }
    }
}

/// Returns whether `path` still leads to `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let (held, found) = (file.metadata(), fs::symlink_metadata(path));
    held.is_ok_and(|held| {
        found.is_ok_and(|found| (held.dev(), held.ino()) == (found.dev(), found.ino()))
    })
}

// Files that are open keep their names there.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("model.gguf");
        (folder, place)
    }

    /// Counts the files of the folder, hidden ones too.
    fn files(folder: &tempfile::TempDir) -> usize {
        fs::read_dir(folder.path()).expect("a folder").count()
    }

    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let (_folder, place) = place();
        let destination = GgufDestination::create(&place, false).expect("begun");
        let explained = |kind: io::ErrorKind| {
            let error = GgufWriteError::Io(kind.into());
            destination.explain(error).to_string()
        };
        let full = explained(io::ErrorKind::StorageFull);
        let parts = ["no space is left for", "model.gguf"];
        assert!(parts.iter().all(|part| full.contains(part)), "{full}");
        assert!(!explained(io::ErrorKind::BrokenPipe).contains("no space"));
    }

    #[test]
    fn a_file_that_appeared_meanwhile_is_not_replaced() {
        let (folder, place) = place();
        let mut destination = GgufDestination::create(&place, false).expect("begun");
        destination.file.write_all(b"new").expect("written");
        fs::write(&place, "another's").expect("written");
        assert!(destination.keep().is_err());
        assert_eq!(fs::read(&place).expect("a file"), b"another's");
        assert_eq!(files(&folder), 1);
    }

    #[test]
    fn two_runs_do_not_write_to_one_place() {
        let (_folder, place) = place();
        let mut first = GgufDestination::create(&place, false).expect("begun");
        let second = GgufDestination::create(&place, true)
            .expect_err("refused")
            .to_string();
        assert!(
            second.contains("being written by another process"),
            "{second}"
        );
        first.file.write_all(b"first").expect("written");
        first.keep().expect("kept");
        assert_eq!(fs::read(&place).expect("a file"), b"first");
        // Dropped, it leaves the place free.
        drop(GgufDestination::create(&place, true).expect("begun"));
        assert!(GgufDestination::create(&place, true).is_ok());
    }

    #[test]
    fn what_a_killed_run_left_is_overwritten() {
        let (folder, place) = place();
        fs::write(folder.path().join(".model.gguf.part"), "half of another").expect("written");
        fs::write(&place, "old").expect("written");
        let mut destination = GgufDestination::create(&place, true).expect("begun");
        destination.file.write_all(b"new").expect("written");
        assert_eq!(
            fs::read(&place).expect("a file"),
            b"old",
            "until it is whole"
        );
        destination.keep().expect("kept");
        assert_eq!(fs::read(&place).expect("a file"), b"new");
        assert_eq!(files(&folder), 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_neither_replaced_nor_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = |name: &str| {
            let path = folder.path().join(name);
            let made = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(made.expect("mkfifo runs").success());
            path
        };
        let place = fifo("model.gguf");
        let refused = GgufDestination::create(&place, true)
            .expect_err("a pipe")
            .to_string();
        assert!(refused.contains("is no regular file"), "{refused}");
        fifo(".other.gguf.part");
        let place = folder.path().join("other.gguf");
        let refused = GgufDestination::create(&place, true).expect_err("a pipe in the way");
        assert!(refused.to_string().contains("is in the way"), "{refused}");
    }
}
