//! How far writing is, on stderr: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::gguf::WriteProgress;
use model::progress::{Observer, Progress, Work};

/// Between lines where there is no terminal: a log must not fill with them.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Tells how far it is.
pub(super) struct Report {
    file: String,
    bar: Option<Arc<dyn Observer>>,
    last: Option<Instant>,
}

impl Report {
    /// Of the file at `place`, whose bar `observer` has.
    pub(super) fn new(place: &Path, observer: Arc<dyn Observer>) -> Self {
        let name = place.file_name().unwrap_or_default();
        Self {
            file: name.to_string_lossy().into_owned(),
            bar: std::io::stderr().is_terminal().then_some(observer),
            last: None,
        }
    }

    /// Shows where writing is. That nobody can be told is no reason to stop.
    pub(super) fn show(&mut self, at: WriteProgress<'_>) {
        if let Some(bar) = &self.bar {
            bar.progress(Progress {
                work: Work::Writing,
                name: &self.file,
                done_bytes: at.done_bytes,
                total_bytes: at.total_bytes,
            });
            return;
        }
        let due = self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        if due {
            self.last = Some(Instant::now());
            anstream::eprintln!("{}", line(at));
        }
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn line(at: WriteProgress<'_>) -> String {
    let (done, total) = (megabytes(at.done_bytes), megabytes(at.total_bytes));
    format!("{done:.1} of {total:.1} MB, {}", at.tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_bytes_and_the_tensor() {
        let at = WriteProgress {
            tensor: "output.weight",
            done_bytes: 1_500_000,
            total_bytes: 3_000_000,
        };
        assert_eq!(line(at), "1.5 of 3.0 MB, output.weight");
    }
}
