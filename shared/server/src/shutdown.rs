//! The order to stop, from the operating system.

use std::io;

use tokio_util::sync::CancellationToken;

/// The exit code after a second signal: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

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
    let mut signals = Signals::install()?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        let first = signals.next().await;
        tracing::info!(
            signal = first,
            "shutting down; a second signal exits at once"
        );
        stop.cancel();
        let second = signals.next().await;
        tracing::warn!(signal = second, "exiting without waiting for the drain");
        std::process::exit(INTERRUPTED);
    });
    Ok(token)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn install() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> &'static str {
        self.0.recv().await;
        "CTRL-C"
    }
}
