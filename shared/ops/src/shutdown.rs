//! The order to stop, from the operating system.

use std::io;
#[cfg(unix)]
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The exit code of a process that had to be ended because its end took too long.
const OVERDUE: i32 = 1;

/// Installs handlers for SIGTERM, SIGQUIT and SIGINT; the token is cancelled by the first signal.
///
/// A SIGINT after it exits the process at once with code 130, for whoever does not want to wait for the drain. SIGTERM
/// and SIGQUIT change nothing any more: a supervisor sends one order twice when it signals a process and then its group.
/// Only a `main` should call this: signals belong to the process.
///
/// # Errors
/// The operating system's, if it refuses a handler.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut signals = Signals::listen(&ENDING)?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        let signal = signals.next().await.name;
        tracing::info!(signal, "shutting down; SIGINT (Ctrl-C) exits at once");
        stop.cancel();
        loop {
            let further = signals.next().await;
            if further == StopSignal::INTERRUPT {
                break;
            }
            let signal = further.name;
            tracing::info!(signal, "already shutting down; SIGINT exits at once");
        }
        tracing::warn!("exiting without waiting for the drain");
        std::process::exit(StopSignal::INTERRUPT.exit_code.into());
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

/// A signal by which a process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSignal {
    /// What it is called.
    pub name: &'static str,
    /// What the process exits with, as a shell would have it: 128 and the signal's number.
    pub exit_code: u8,
}

impl StopSignal {
    /// Sent when a terminal closes; a service reads its files again.
    pub const HANG_UP: Self = Self::new("SIGHUP", 1);
    /// Sent by Ctrl-C.
    pub const INTERRUPT: Self = Self::new("SIGINT", 2);
    /// Sent by Ctrl-\, and by some supervisors to stop a service.
    pub const QUIT: Self = Self::new("SIGQUIT", 3);
    /// Sent by supervisors to stop a service.
    pub const TERMINATE: Self = Self::new("SIGTERM", 15);

    const fn new(name: &'static str, number: u8) -> Self {
        Self {
            name,
            exit_code: 128 + number,
        }
    }
}

/// The signals that end a service.
const ENDING: [StopSignal; 3] = [
    StopSignal::TERMINATE,
    StopSignal::QUIT,
    StopSignal::INTERRUPT,
];

/// Receives signals that were sent since it was created.
#[cfg(unix)]
pub struct Signals(Vec<(StopSignal, tokio::signal::unix::Signal)>);

#[cfg(unix)]
impl Signals {
    /// Starts to receive `signals`.
    ///
    /// # Errors
    /// The operating system's, if it refuses a handler.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn listen(signals: &[StopSignal]) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listened = signals.iter().map(|&wanted| {
            let kind = SignalKind::from_raw(i32::from(wanted.exit_code) - 128);
            Ok((wanted, signal(kind)?))
        });
        listened.collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopSignal {
        std::future::poll_fn(|cx| {
            for (signal, received) in &mut self.0 {
                if received.poll_recv(cx).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Receives Ctrl-C, if it was pressed since this was created.
#[cfg(windows)]
pub struct Signals(Option<tokio::signal::windows::CtrlC>);

#[cfg(windows)]
impl Signals {
    /// Starts to receive Ctrl-C if SIGINT is one of `signals`; Windows has none of the others.
    ///
    /// # Errors
    /// The operating system's, if it refuses a handler.
    pub fn listen(signals: &[StopSignal]) -> io::Result<Self> {
        let is_wanted = signals.contains(&StopSignal::INTERRUPT);
        let listened = is_wanted.then(tokio::signal::windows::ctrl_c);
        listened.transpose().map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopSignal {
        match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => std::future::pending().await,
        };
        StopSignal::INTERRUPT
    }
}
