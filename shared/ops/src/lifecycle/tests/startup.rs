//! Work that a service begins with.

use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::lifecycle::{blocking, unless_stopped};

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
