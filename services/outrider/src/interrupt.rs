//! Signals that end a command which has something to tidy up first.

use std::io;

use ops::shutdown::{Signals, StopSignal};
use tokio::sync::oneshot;

/// Begins to listen for SIGINT and SIGTERM; for SIGHUP too, but where the process was started to outlive its
/// terminal, as by nohup.
///
/// # Errors
/// The operating system's, if it refuses a handler.
pub(crate) fn listen() -> io::Result<Signals> {
    let mut signals = vec![StopSignal::INTERRUPT, StopSignal::TERMINATE];
    if !is_hang_up_ignored() {
        signals.push(StopSignal::HANG_UP);
    }
    Signals::listen(&signals)
}

/// Returns the first of these signals, for a command that prints what it has before it ends. A second one exits the
/// process at once: whoever reads the output may not read any more.
///
/// # Errors
/// The operating system's, if it refuses a handler.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn first() -> io::Result<impl Future<Output = StopSignal>> {
    let mut signals = listen()?;
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let _ = tell.send(signals.next().await);
        let second = signals.next().await;
        std::process::exit(second.exit_code.into());
    });
    Ok(async {
        match told.await {
            Ok(signal) => signal,
            // The runtime ends, and this with it.
            Err(_) => std::future::pending().await,
        }
    })
}

/// Returns whether the process was started with SIGHUP ignored.
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    let mut current = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes nothing, and writes what it was into `current`, all zeros of which are a value.
    unsafe {
        libc::sigaction(libc::SIGHUP, std::ptr::null(), current.as_mut_ptr()) == 0
            && current.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(not(unix))]
fn is_hang_up_ignored() -> bool {
    true
}
