//! Work that a service begins with, such as loading a model: it blocks, and nobody need wait for it once the
//! service is told to stop.

use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;

use tokio::sync::oneshot;

/// Runs `work`, which may block for long, on a thread of its own.
///
/// The future may be dropped before it is done. The thread then goes on until the process ends, and the
/// process does not wait for it, as it would for a blocking task of the runtime.
///
/// # Panics
/// As `work` does.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = oneshot::channel();
    std::thread::spawn(move || {
        // Nothing that `work` leaves half done is looked at: the panic goes on below.
        let outcome = panic::catch_unwind(AssertUnwindSafe(work));
        // The receiver is gone if nobody waits any more.
        let _ = done.send(outcome);
    });
    match outcome.await {
        Ok(Ok(value)) => value,
        Ok(Err(panicked)) => panic::resume_unwind(panicked),
        Err(_) => unreachable!("the thread sends before it ends"),
    }
}

/// The same, or `None` as soon as `shutdown` completes.
pub async fn unless_stopped<T: Send + 'static>(
    shutdown: Pin<&mut impl Future<Output = ()>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown => None,
        value = blocking(work) => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn work_that_never_ends_is_left_behind() {
        // Never sent to: the thread waits for ever, as for a server that does not answer.
        let (_kept, never) = mpsc::channel::<()>();
        let (began, beginning) = oneshot::channel();
        let shutdown = std::pin::pin!(async {
            beginning.await.expect("the work began");
        });
        let work = move || {
            let _ = began.send(());
            never.recv()
        };
        let stopped = tokio::time::timeout(Duration::from_secs(5), unless_stopped(shutdown, work));
        assert!(stopped.await.expect("in time").is_none());
    }

    #[tokio::test]
    async fn what_it_comes_to_is_given_back() {
        let never = std::pin::pin!(std::future::pending());
        assert_eq!(unless_stopped(never, || 7).await, Some(7));
        let panicking = tokio::spawn(blocking(|| panic!("as told")));
        assert!(panicking.await.expect_err("a panic").is_panic());
    }
}
