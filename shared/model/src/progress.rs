//! How far work on a model is that takes a while, for whoever watches it.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A file comes from the hub.
    Downloading,
    /// Weights are read and brought to the format they are computed in.
    Loading,
    /// A file is written.
    Writing,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Downloading => "downloading",
            Self::Loading => "loading",
            Self::Writing => "writing",
        })
    }
}

/// How far it is. `done_bytes` never goes back but where a download must begin anew, and is `total_bytes` once,
/// when the work is done; of work that fails, there is nothing more to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is done.
    pub work: Work,
    /// The file or the model it is done on.
    pub name: &'a str,
    /// Bytes that are done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

impl Progress<'_> {
    /// Whether the work is done.
    pub fn is_done(&self) -> bool {
        self.done_bytes == self.total_bytes
    }

    /// How much of it is done, of 100.
    pub fn percent(&self) -> u64 {
        self.done_bytes.saturating_mul(100) / self.total_bytes.max(1)
    }
}

/// Watches what is done on one model at a time.
pub trait Observer: fmt::Debug + Send + Sync {
    /// It is this far. Called often, from the thread that does the work.
    fn progress(&self, at: Progress<'_>);
    /// Something that a user should read, in one line.
    fn note(&self, line: &str);
}

/// Between two lines of a download.
const INTERVAL: Duration = Duration::from_secs(10);

/// Tells of a download now and then, and of its end.
#[derive(Debug, Default)]
pub struct Lines {
    /// When the last line was written, or the download began.
    last: Mutex<Option<Instant>>,
}

impl Lines {
    /// The line to be written `now`, if there is one.
    fn line(&self, at: Progress<'_>, now: Instant) -> Option<String> {
        if at.work != Work::Downloading {
            return None;
        }
        let (file, bytes) = (at.name, at.total_bytes);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if at.is_done() {
            *last = None;
            return Some(format!("downloaded {file}: {bytes} bytes"));
        }
        let since = *last.get_or_insert(now);
        if now.duration_since(since) < INTERVAL {
            return None;
        }
        *last = Some(now);
        let percent = at.percent();
        Some(format!("downloading {file}: {percent} % of {bytes} bytes"))
    }
}

impl Observer for Lines {
    fn progress(&self, at: Progress<'_>) {
        if let Some(line) = self.line(at, Instant::now()) {
            self.note(&line);
        }
    }

    fn note(&self, line: &str) {
        // A service goes on where its terminal was closed.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_told_of_every_ten_seconds_and_at_its_end() {
        let (lines, began) = (Lines::default(), Instant::now());
        let line = |work, done_bytes, seconds| {
            let at = Progress {
                work,
                name: "a.gguf",
                done_bytes,
                total_bytes: 200,
            };
            lines.line(at, began + Duration::from_secs(seconds))
        };
        let told = [(0, 0), (50, 9), (60, 11), (80, 20), (100, 21), (200, 22)];
        let told = told.map(|(done, at)| line(Work::Downloading, done, at));
        let expected = [
            None,
            None,
            Some("downloading a.gguf: 30 % of 200 bytes"),
            None,
            Some("downloading a.gguf: 50 % of 200 bytes"),
            Some("downloaded a.gguf: 200 bytes"),
        ];
        assert_eq!(told.each_ref().map(Option::as_deref), expected);
        // The next file has its own ten seconds.
        assert_eq!(line(Work::Downloading, 1, 33), None);
        assert_eq!(line(Work::Loading, 1, 99), None);
    }
}
