//! How far a round's work has come: told by the thread that does the work, waited for by the stream that
//! owes the reply.
//!
//! ```text
//! engine thread ──Reporter (never blocks)──▶ latest value ──ProgressWait::wait──▶ replies, now and then
//! ```
//!
//! A round that takes long is not late while its work goes on: every sign of progress starts its time anew.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Shortest time between two reports to the client; those in between are left out, the latest is not.
pub const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// How far a round's work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundProgress {
    /// Units of work done in this round.
    pub done: usize,
    /// These, and what is known to be left before something can be answered. At least `done`.
    pub total: usize,
}

/// What the reporter said last.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    progress: RoundProgress,
    /// Whether what is left may take long, so that a first report should not wait.
    is_long: bool,
}

/// The end that a round's work reports on. It never blocks, and may be moved from thread to thread.
#[derive(Debug)]
pub struct Reporter {
    latest: watch::Sender<Latest>,
    /// Units done by the round's earlier steps.
    earlier: usize,
}

/// The end that a round's reply is awaited on.
#[derive(Debug)]
pub struct ProgressWait {
    latest: watch::Receiver<Latest>,
    /// When the round began, and then when the client was last told.
    reported: Instant,
    was_told: bool,
}

/// A round's work made no progress for this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled(pub Duration);

/// Both ends for a round that begins now.
pub fn channel() -> (Reporter, ProgressWait) {
    let (sender, receiver) = watch::channel(Latest::default());
    let reporter = Reporter {
        latest: sender,
        earlier: 0,
    };
    let progressing = ProgressWait {
        latest: receiver,
        reported: Instant::now(),
        was_told: false,
    };
    (reporter, progressing)
}

impl Reporter {
    /// A part of a long step is done: `done` units of its `total`.
    pub fn part(&self, done: usize, total: usize) {
        self.send(done, total, true);
    }

    /// A step of `units` is done, and its result is not yet a reply.
    pub fn step(&mut self, units: usize) {
        self.count(units);
        self.send(0, 0, false);
    }

    /// A step of `units` is done, and its result is a reply: that is progress enough.
    pub fn count(&mut self, units: usize) {
        self.earlier += units;
    }

    fn send(&self, done: usize, total: usize, is_long: bool) {
        let progress = RoundProgress {
            done: self.earlier + done,
            total: self.earlier + total.max(done),
        };
        self.latest.send_replace(Latest { progress, is_long });
    }
}

impl ProgressWait {
    /// Awaits `work` for as long as no `limit` passes without progress. `report` is called with the progress
    /// made meanwhile: at once for the first part of a long step, otherwise once in [`REPORT_INTERVAL`].
    ///
    /// # Errors
    /// [`Stalled`] once `limit` has passed without progress; `work` is dropped then.
    pub async fn wait<T>(
        &mut self,
        limit: Duration,
        work: impl Future<Output = T>,
        report: impl Fn(RoundProgress),
    ) -> Result<T, Stalled> {
        let mut work = std::pin::pin!(work);
        let mut late_at = Instant::now() + limit;
        let (mut is_open, mut unreported) = (true, None::<Latest>);
        loop {
            let report_at = match unreported {
                Some(latest) if latest.is_long && !self.was_told => self.reported,
                _ => self.reported + REPORT_INTERVAL,
            };
            tokio::select! {
                biased;
                done = &mut work => {
                    // What led to this result says nothing of the next.
                    self.latest.mark_unchanged();
                    return Ok(done);
                }
                changed = self.latest.changed(), if is_open => {
                    // The work drops its reporter when it is done, or given up; then its result comes.
                    is_open = changed.is_ok();
                    if is_open {
                        unreported = Some(*self.latest.borrow_and_update());
                        late_at = Instant::now() + limit;
                    }
                }
                () = tokio::time::sleep_until(report_at), if unreported.is_some() => {
                    if let Some(latest) = unreported.take() {
                        report(latest.progress);
                    }
                    self.reported = Instant::now();
                    self.was_told = true;
                }
                () = tokio::time::sleep_until(late_at) => return Err(Stalled(limit)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
