//! A terminal that a program runs at: a test types, and looks at the screen.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::Pty;
use vt100::{Parser, Screen};

/// So many that nothing scrolls away.
const ROWS: u16 = 200;
const COLUMNS: u16 = 100;
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal, and the program that has it.
pub(crate) struct Terminal {
    keys: Arc<Pty>,
    output: Receiver<Vec<u8>>,
    parser: Parser,
    /// The program; none once the terminal was closed and the program left to the test.
    child: Option<Child>,
}

impl Terminal {
    pub(crate) fn run(mut command: Command) -> Self {
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(Size::new(ROWS, COLUMNS)).expect("a size");
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        let command = pty_process::blocking::Command::from(command);
        let child = command.spawn(pts).expect("the binary runs");
        let keys = Arc::new(pty);
        let (send, output) = mpsc::channel();
        let reading = Arc::clone(&keys);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It fails when the program has ended.
            while let Ok(read @ 1..) = (&*reading).read(&mut bytes) {
                if send.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let size = |of: u16| NonZeroU16::new(of).expect("a size");
        Self {
            keys,
            output,
            parser: Parser::new(size(ROWS), size(COLUMNS), 0),
            child: Some(child),
        }
    }

    pub(crate) fn types(&self, keys: &str) {
        (&*self.keys).write_all(keys.as_bytes()).expect("typed");
    }

    /// Returns what stands on the screen.
    pub(crate) fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Screen) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(self.parser.screen()) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(error) => panic!("{what}: {error}; the screen: {}", self.contents()),
            }
        }
    }

    /// Waits until the screen shows `text`.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the line with the cursor is `text`.
    #[track_caller]
    pub(crate) fn has_line(&mut self, text: &str) {
        self.until(text, |screen| line(screen).trim_end() == text);
    }

    /// Closes the terminal and returns the program, which goes on without one. The terminal is gone once the program has
    /// written something more, when the thread that reads it ends.
    pub(crate) fn closes(mut self) -> Child {
        self.child.take().expect("it was not closed before")
    }

    /// Waits for the program's end. What is left on the screen comes with its status.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("it does not end: {error}: {}", self.contents()),
            }
        }
        let child = self.child.as_mut().expect("it was not closed");
        let status = child.wait().expect("a child");
        (status, self.contents())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The rows of the screen, also where a line goes on in the next.
pub(crate) fn rows(screen: &Screen) -> impl Iterator<Item = String> {
    screen.rows(0, COLUMNS)
}

/// The row with the cursor.
fn line(screen: &Screen) -> String {
    let (row, _) = screen.cursor_position();
    rows(screen).nth(row.into()).unwrap_or_default()
}
