//! How far a long command is, on stderr: a line that is rewritten, or a bar for each model that is downloaded, loaded or
//! written.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::progress::{ProgressLines, ProgressObserver, WorkProgress};

/// Rewrites the line with `what`; writes nothing where stderr is no terminal.
pub fn show(what: &str) -> std::io::Result<()> {
    let mut err = std::io::stderr();
    if !err.is_terminal() {
        return Ok(());
    }
    // Back to the first column, and what stood there before is wiped out.
    write!(err, "\r\u{1b}[2K{what}")?;
    err.flush()
}

/// Wipes the line out, for what is printed next.
pub fn clear() -> std::io::Result<()> {
    show("")
}

/// What is done sooner shows no bar: it would only flicker.
const UNSEEN: Duration = Duration::from_millis(300);

const TEMPLATE: &str = "{msg}  {wide_bar}  {bytes} of {total_bytes}, {eta} left";

/// The bars of a command.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Where they are drawn, one below the other; none where there are lines instead.
    drawn: Option<MultiProgress>,
}

impl Bars {
    /// Returns bars where stderr is a terminal, lines of downloads elsewhere.
    pub fn on_stderr() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            drawn: is_terminal.then(MultiProgress::new),
        }
    }

    /// Returns lines also at a terminal: beside a log, which does not know of bars.
    pub fn lines() -> Self {
        Self { drawn: None }
    }

    /// Who shows how far one model is.
    pub fn observer(&self) -> Arc<dyn ProgressObserver> {
        match &self.drawn {
            Some(bars) => Arc::new(Bar {
                bars: bars.clone(),
                current: Mutex::default(),
            }),
            None => Arc::new(ProgressLines::default()),
        }
    }

    /// Takes all bars away, and draws none any more: what is still under way is of no account.
    pub fn end(&self) {
        if let Some(bars) = &self.drawn {
            // That they cannot be wiped out is no failure of what they told of.
            let _unseen = bars.clear();
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
    }
}

/// The bar of one model, which is downloaded file by file, and loaded.
#[derive(Debug)]
struct Bar {
    bars: MultiProgress,
    current: Mutex<Option<Current>>,
}

/// What is under way.
#[derive(Debug)]
struct Current {
    label: String,
    began: Instant,
    /// None before it has taken a while.
    shown: Option<ProgressBar>,
}

impl Current {
    /// Draws the bar, if it is time to.
    fn show(&mut self, at: WorkProgress<'_>, bars: &MultiProgress) {
        if self.shown.is_none() && self.began.elapsed() >= UNSEEN {
            let bar = ProgressBar::new(at.total_bytes)
                .with_position(at.done_bytes)
                .with_elapsed(self.began.elapsed())
                .with_message(self.label.clone());
            let style = ProgressStyle::with_template(TEMPLATE);
            let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.shown = Some(bars.add(bar));
        }
        if let Some(bar) = &self.shown {
            bar.set_position(at.done_bytes);
        }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

impl ProgressObserver for Bar {
    fn progress(&self, at: WorkProgress<'_>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if at.is_done() {
            *current = None;
            return;
        }
        let label = format!("{} {}", at.work, at.name);
        let is_same = current.as_ref().is_some_and(|it| it.label == label);
        if !is_same {
            // The bar before is gone before there is another.
            *current = None;
        }
        let current = current.get_or_insert_with(|| Current {
            label,
            began: Instant::now(),
            shown: None,
        });
        current.show(at, &self.bars);
    }

    fn note(&self, line: &str) {
        self.bars.suspend(|| anstream::eprintln!("{line}"));
    }
}

#[cfg(test)]
mod tests {
    use model::progress::WorkKind;

    use super::*;

    #[test]
    fn a_bar_is_there_after_a_while_and_gone_at_the_end() {
        let bar = Bar {
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
            current: Mutex::default(),
        };
        let tell = |name, done_bytes| {
            bar.progress(WorkProgress {
                work: WorkKind::Loading,
                name,
                done_bytes,
                total_bytes: 10,
            });
            let current = bar.current.lock().expect("no panic");
            let shown = current.as_ref().and_then(|current| current.shown.as_ref());
            shown.map(|bar| (bar.position(), bar.message()))
        };
        let wait = || {
            let mut current = bar.current.lock().expect("no panic");
            current.as_mut().expect("under way").began -= UNSEEN;
        };
        assert_eq!(tell("a", 0), None);
        assert_eq!(tell("a", 9), None);
        assert_eq!(tell("a", 10), None);
        tell("a", 1);
        wait();
        assert_eq!(tell("a", 2), Some((2, "loading a".to_owned())));
        assert_eq!(tell("a", 5), Some((5, "loading a".to_owned())));
        // Another one has its own while.
        assert_eq!(tell("b", 5), None);
        wait();
        assert!(tell("b", 6).is_some());
        assert_eq!(tell("b", 10), None);
    }
}
