//! Signals that end a command which has something to tidy up first.

#[cfg(not(unix))]
pub(crate) use self::other::Interrupt;
#[cfg(unix)]
pub(crate) use self::unix::Interrupt;

#[cfg(unix)]
mod unix {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// SIGINT, SIGTERM and SIGHUP, from when it is made.
    pub(crate) struct Interrupt {
        ctrl_c: Signal,
        terminate: Signal,
        /// None where the process was started to outlive its terminal, as by nohup.
        hang_up: Option<Signal>,
    }

    impl Interrupt {
        /// Begins to listen.
        ///
        /// # Errors
        /// The operating system's, if it refuses a handler.
        pub(crate) fn listen() -> io::Result<Self> {
            let hang_up = !is_ignored(libc::SIGHUP);
            let hang_up = hang_up.then(|| signal(SignalKind::hangup())).transpose()?;
            Ok(Self {
                ctrl_c: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up,
            })
        }

        /// Waits for a signal; the code to exit with, as a shell would have it: 128 and the signal's number.
        pub(crate) async fn exit_code(&mut self) -> u8 {
            let hang_up = async {
                match &mut self.hang_up {
                    Some(signal) => signal.recv().await,
                    None => std::future::pending().await,
                }
            };
            let signal = tokio::select! {
                _ = self.ctrl_c.recv() => libc::SIGINT,
                _ = self.terminate.recv() => libc::SIGTERM,
                _ = hang_up => libc::SIGHUP,
            };
            128 + signal as u8
        }
    }

    /// Whether the process was started with `signal` ignored.
    fn is_ignored(signal: libc::c_int) -> bool {
        let mut current = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: changes nothing, and writes what it was into `current`, all zeros of which are a value.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), current.as_mut_ptr()) == 0
                && current.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }
}

#[cfg(not(unix))]
mod other {
    use std::io;

    /// Ctrl-C.
    pub(crate) struct Interrupt;

    impl Interrupt {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn exit_code(&mut self) -> u8 {
            // Without a handler there is nothing to wait for: the system ends the program.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            crate::global::INTERRUPTED
        }
    }
}
