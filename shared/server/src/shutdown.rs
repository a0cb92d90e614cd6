//! The order to stop, from the operating system.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The exit code after a second signal: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// The exit code of a process that had to be ended because its end took too long.
const OVERDUE: i32 = 1;

/// Installs handlers for SIGTERM and SIGINT; the token is cancelled by the first signal.
///
/// A second signal exits the process at once with code 130, for whoever does not want to wait for
/// the drain. Only a `main` should call this: signals belong to the process.
///
/// # Errors
/// The operating system's, if it refuses a handler.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut signals = Signals::listen(false)?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        let first = signals.next().await.name;
        tracing::info!(
            signal = first,
            "shutting down; a second signal exits at once"
        );
        stop.cancel();
        let second = signals.next().await.name;
        tracing::warn!(signal = second, "exiting without waiting for the drain");
        std::process::exit(INTERRUPTED);
    });
    Ok(token)
}

/// Exits the process with code 1 if it is still there `limit` after `stop` was cancelled.
///
/// A drain has a grace of its own; this is for what may hang after it: a thread that does not come
/// back, a disk that does not answer. The clock runs in a thread of its own, so that a runtime that
/// is held up does not hold it up too.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn exit_within(stop: CancellationToken, limit: Duration) {
    tokio::spawn(async move {
        stop.cancelled().await;
        std::thread::spawn(move || {
            std::thread::sleep(limit);
            tracing::error!(
                limit_ms = limit.as_millis() as u64,
                "not ended in time; exiting without waiting for the rest"
            );
            std::process::exit(OVERDUE);
        });
    });
}

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSignal {
    /// What it is called.
    pub name: &'static str,
    /// What the process exits with, as a shell would have it: 128 and the signal's number.
    pub exit_code: u8,
}

/// SIGINT, SIGTERM and perhaps SIGHUP, from when it is made.
#[cfg(unix)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// The operating system's, if it refuses a handler.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn listen(with_hang_up: bool) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hang_up = with_hang_up.then(|| signal(SignalKind::hangup()));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: hang_up.transpose()?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopSignal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let (name, number) = tokio::select! {
            _ = self.interrupt.recv() => ("SIGINT", 2),
            _ = self.terminate.recv() => ("SIGTERM", 15),
            _ = hang_up => ("SIGHUP", 1),
        };
        let exit_code = 128 + number;
        StopSignal { name, exit_code }
    }
}

/// Ctrl-C, from when it is made.
#[cfg(windows)]
pub struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// The operating system's, if it refuses a handler.
    pub fn listen(_with_hang_up: bool) -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopSignal {
        self.0.recv().await;
        StopSignal {
            name: "CTRL-C",
            exit_code: 130,
        }
    }
}
