//! How far a download is: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use hf_hub::api::Progress as _;
use indicatif::ProgressBar;

/// Between two lines, where there is no terminal.
const INTERVAL: Duration = Duration::from_secs(10);

/// The progress of one file, on standard error.
pub(super) struct Progress {
    file: String,
    size: u64,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Progress {
    pub(super) fn new(file: &str, size: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let mut bar = ProgressBar::new(0);
            bar.init(size as usize, file);
            bar
        });
        Self {
            file: file.to_owned(),
            size,
            bar,
            last_line: Instant::now(),
        }
    }

    /// Tells that the first `bytes` are here.
    pub(super) fn at(&mut self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        } else if self.last_line.elapsed() >= INTERVAL {
            self.last_line = Instant::now();
            let percent = bytes * 100 / self.size.max(1);
            eprintln!(
                "downloading {}: {percent} % of {} bytes",
                self.file, self.size
            );
        }
    }

    pub(super) fn finish(&mut self) {
        match &self.bar {
            Some(bar) => bar.finish(),
            None => eprintln!("downloaded {}: {} bytes", self.file, self.size),
        }
    }
}
