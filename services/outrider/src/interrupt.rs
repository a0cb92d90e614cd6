//! Signals that end a command which has something to tidy up first.

use std::io;

use server::shutdown::Signals;

/// Begins to listen for SIGINT and SIGTERM; for SIGHUP too, but where the process was started to outlive its
/// terminal, as by nohup.
///
/// # Errors
/// The operating system's, if it refuses a handler.
pub(crate) fn listen() -> io::Result<Signals> {
    Signals::listen(!is_hang_up_ignored())
}

/// Whether the process was started with SIGHUP ignored.
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
