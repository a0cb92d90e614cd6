//! The line that is being typed.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};

use rustyline::config::{Behavior, Config};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, Completer, ConditionalEventHandler, Event, EventContext, EventHandler, Helper,
    Highlighter, Hinter, KeyEvent, Movement, RepeatCount,
};

use super::commands;

const PROMPT: &str = "> ";
/// Lines of earlier conversations that are kept.
const LINES_KEPT: usize = 1_000;

/// Reads from the terminal, with a history.
pub(super) struct Editor {
    lines: rustyline::Editor<Wholeness, FileHistory>,
    history: HistoryFile,
}

impl Editor {
    /// # Errors
    /// If the terminal cannot be used.
    pub(super) fn open() -> anyhow::Result<Self> {
        let config = Config::builder()
            .max_history_size(LINES_KEPT)?
            .auto_add_history(true)
            // What is printed may go to a file.
            .behavior(Behavior::PreferTerm)
            .build();
        let mut lines = rustyline::Editor::with_config(config)?;
        lines.set_helper(Some(Wholeness));
        let clears = EventHandler::Conditional(Box::new(ClearsLine));
        lines.bind_sequence(KeyEvent::ctrl('C'), clears);
        let history = HistoryFile::open(lines.history_mut());
        Ok(Self { lines, history })
    }

    /// Waits for what is typed next; `None` if that is the wish to end.
    ///
    /// # Errors
    /// The terminal's.
    pub(super) fn read(&mut self) -> anyhow::Result<Option<String>> {
        let mut is_interrupted = false;
        loop {
            match self.lines.readline(PROMPT) {
                Ok(text) => {
                    self.history.add(self.lines.history_mut());
                    return Ok(Some(text));
                }
                Err(ReadlineError::Interrupted) if !is_interrupted => {
                    is_interrupted = true;
                    anstream::eprintln!("Ctrl-C once more ends, as /bye and Ctrl-D do");
                }
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    anstream::eprintln!("what is not UTF-8 was left out");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Has the line go on where what was typed is not whole.
#[derive(Completer, Helper, Highlighter, Hinter)]
struct Wholeness;

impl Validator for Wholeness {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if commands::is_whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// Ctrl-C: clears what is typed. An empty line is interrupted, as is the default.
struct ClearsLine;

impl ConditionalEventHandler for ClearsLine {
    fn handle(
        &self,
        _: &Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let is_empty = context.line().is_empty();
        (!is_empty).then_some(Cmd::Kill(Movement::WholeBuffer))
    }
}

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
