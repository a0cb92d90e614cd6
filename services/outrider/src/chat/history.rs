//! What was typed in earlier conversations, in a file.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};

use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};

/// Where lines are kept; nowhere, once that has failed.
#[derive(Debug)]
pub(super) struct HistoryFile(Option<PathBuf>);

impl HistoryFile {
    /// Reads what is there into `history`.
    pub(super) fn open(history: &mut FileHistory) -> Self {
        let folder = dirs::state_dir().or_else(dirs::data_local_dir);
        let mut file = Self(folder.map(|folder| folder.join("outrider").join("chat_history")));
        file.attempt("read", |path| match history.load(path) {
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            loaded => loaded,
        });
        file
    }

    /// Adds the lines that are new in `history`.
    pub(super) fn add(&mut self, history: &mut FileHistory) {
        self.attempt("written", |path| {
            if let Some(folder) = path.parent() {
                make(folder)?;
            }
            history.append(path)
        });
    }

    /// Uses the file; warns where that fails, and leaves it alone from then on.
    fn attempt(&mut self, what: &str, work: impl FnOnce(&Path) -> rustyline::Result<()>) {
        let Some(path) = &self.0 else { return };
        if let Err(error) = work(path) {
            let path = path.display();
            anstream::eprintln!("lines typed are not kept: {path} cannot be {what}: {error}");
            self.0 = None;
        }
    }
}

/// Makes a folder that others cannot look into.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
