//! The file that is written: under another name beside its place until it is whole.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::gguf::GgufWriteError;
use tempfile::NamedTempFile;

/// Large enough that writing is not by small pieces, small enough for every machine.
const BUFFER: usize = 1 << 20;

/// A file on its way to `place`; removed unless [`Destination::keep`] is called.
#[derive(Debug)]
pub(super) struct Destination {
    file: BufWriter<NamedTempFile>,
    place: PathBuf,
    replace: bool,
}

impl Destination {
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
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let file = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".part")
            .tempfile_in(folder)
            .with_context(|| format!("'{}' cannot be written to", folder.display()))?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER, file),
            place: place.to_owned(),
            replace,
        })
    }

    /// Where the file is for now.
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
        readable(&file)?;
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

/// Gives a temporary file, which is private, the rights that files are made with.
#[cfg(unix)]
fn readable(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let rights = std::fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(rights)
}

#[cfg(not(unix))]
fn readable(_file: &NamedTempFile) -> io::Result<()> {
    Ok(())
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("model.gguf");
        let destination = Destination::create(&place, false).expect("begun");
        let explained = |kind: io::ErrorKind| {
            let error = GgufWriteError::Io(kind.into());
            destination.explain(error).to_string()
        };
        let full = explained(io::ErrorKind::StorageFull);
        assert!(
            full.contains("no space is left for") && full.contains("model.gguf"),
            "{full}"
        );
        assert!(!explained(io::ErrorKind::BrokenPipe).contains("no space"));
    }

    #[test]
    fn a_file_that_appeared_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("model.gguf");
        let mut destination = Destination::create(&place, false).expect("begun");
        destination.write_all(b"new").expect("written");
        std::fs::write(&place, "another's").expect("written");
        assert!(destination.keep().is_err());
        assert_eq!(std::fs::read(&place).expect("a file"), b"another's");
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 1);
    }

    #[test]
    fn what_is_kept_is_whole_and_readable() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("model.gguf");
        std::fs::write(&place, "old").expect("written");
        let mut destination = Destination::create(&place, true).expect("begun");
        destination.write_all(b"new").expect("written");
        assert_eq!(std::fs::read(&place).expect("a file"), b"old");
        destination.keep().expect("kept");
        assert_eq!(std::fs::read(&place).expect("a file"), b"new");
    }
}
