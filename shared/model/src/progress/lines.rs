//! Lines on standard error, as for a log: of downloads, which take long; what is loaded is logged.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Observer, Progress, Work};

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
