//! How far writing is, on stderr: a line that is rewritten on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use model::gguf::WriteProgress;

use crate::progress;

/// Width of the bar.
const WIDTH: usize = 30;
/// Between lines where there is no terminal: a log must not fill with them.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// What was shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    last: Option<Instant>,
}

impl Report {
    /// Shows where writing is. That nobody can be told is no reason to stop.
    pub(super) fn show(&mut self, at: WriteProgress<'_>) {
        if std::io::stderr().is_terminal() {
            self.last = Some(Instant::now());
            let _unseen = progress::show(&bar(at));
            return;
        }
        let due = self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        if due {
            self.last = Some(Instant::now());
            anstream::eprintln!("{}", line(at));
        }
    }

    /// Leaves the line to what is printed next.
    pub(super) fn finish(&self) {
        if self.last.is_some() {
            let _unseen = progress::clear();
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

fn bar(at: WriteProgress<'_>) -> String {
    let filled = (at.done_bytes as f64 / at.total_bytes.max(1) as f64 * WIDTH as f64) as usize;
    let filled = filled.min(WIDTH);
    let (full, empty) = ("█".repeat(filled), "░".repeat(WIDTH - filled));
    format!("{full}{empty} {}", line(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_file() {
        let at = |done_bytes| WriteProgress {
            tensor: "output.weight",
            done_bytes,
            total_bytes: 3_000_000,
        };
        let filled = |done| bar(at(done)).chars().filter(|c| *c == '█').count();
        assert_eq!([0, 1_500_000, 3_000_000].map(filled), [0, 15, 30]);
        assert_eq!(line(at(1_500_000)), "1.5 of 3.0 MB, output.weight");
    }
}
