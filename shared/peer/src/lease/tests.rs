use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const A: SessionId = [1; 16];
const B: SessionId = [2; 16];
const LEASE: Duration = Duration::from_secs(10);
const JUST_BEFORE_ITS_END: Duration = Duration::from_millis(9_999);

fn counts(attached: usize, detached: usize) -> SessionCounts {
    SessionCounts { attached, detached }
}

/// A state that counts its drops.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_detached_session_is_found_again_with_its_state_until_its_lease_ends() {
    let leases = Leases::new(4);
    let (stream, state) = leases.attach(A, 1).unwrap();
    assert_eq!(state, None);
    assert_eq!(leases.counts(), counts(1, 0));

    stream.detach("cache", LEASE);
    assert_eq!(leases.counts(), counts(0, 1));

    tokio::time::advance(JUST_BEFORE_ITS_END).await;
    let (stream, state) = leases.attach(A, 1).unwrap();
    assert_eq!(state, Some("cache"));
    assert_eq!(leases.counts(), counts(1, 0));

    stream.detach("cache", LEASE);
    // `advance` moves the clock without letting the sweeper run first.
    tokio::time::advance(LEASE).await;
    let (_stream, state) = leases.attach(A, 1).unwrap();
    assert_eq!(state, None);
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_drops_what_has_expired_and_nothing_else() {
    let drops = Arc::new(AtomicUsize::new(0));
    let leases = Leases::new(4);
    for (id, lease) in [(A, LEASE), (B, 2 * LEASE)] {
        let (stream, _) = leases.attach(id, 1).unwrap();
        stream.detach(Counted(Arc::clone(&drops)), lease);
    }

    tokio::time::sleep(JUST_BEFORE_ITS_END).await;
    assert_eq!(leases.counts(), counts(0, 2));
    tokio::time::sleep(SWEEP_INTERVAL * 2).await;
    assert_eq!(leases.counts(), counts(0, 1));
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_stream_makes_the_first_give_way() {
    let leases = Leases::new(1);
    let (first, _) = leases.attach(A, 1).unwrap();
    let (second, state) = leases.attach(A, 1).unwrap();
    assert_eq!(state, None);
    let reported = tokio::time::timeout(LEASE, first.superseded()).await;
    assert!(reported.is_ok());
    let reported = tokio::time::timeout(LEASE, second.superseded()).await;
    assert!(reported.is_err());

    first.detach("stale", LEASE);
    assert_eq!(
        leases.counts(),
        counts(1, 0),
        "the first no longer speaks for it"
    );
    second.detach("fresh", LEASE);
    assert_eq!(leases.attach(A, 1).unwrap().1, Some("fresh"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_closes_its_session_unless_it_was_superseded() {
    let leases = Leases::<()>::new(1);
    let (first, _) = leases.attach(A, 1).unwrap();
    let (second, _) = leases.attach(A, 1).unwrap();
    drop(first);
    assert_eq!(leases.counts(), counts(1, 0));
    drop(second);
    assert_eq!(leases.counts(), counts(0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_table_refuses_new_sessions_but_not_its_own() {
    let leases = Leases::new(1);
    let (stream, _) = leases.attach(A, 1).unwrap();
    let full = leases.attach(B, 1).unwrap_err();
    assert_eq!(full.to_string(), "all 1 sessions are taken");

    stream.detach("cache", LEASE);
    assert!(
        leases.attach(B, 1).is_err(),
        "a detached session keeps its place"
    );
    let (stream, state) = leases.attach(A, 1).unwrap();
    assert_eq!(state, Some("cache"));

    stream.detach("cache", LEASE);
    tokio::time::advance(LEASE).await;
    assert!(leases.attach(B, 1).is_ok(), "an expired one does not");
}

#[tokio::test(start_paused = true)]
async fn a_state_may_use_the_table_while_it_is_dropped() {
    struct Nosy(Arc<Leases<Nosy>>);
    impl Drop for Nosy {
        fn drop(&mut self) {
            self.0.counts();
        }
    }
    let leases = Leases::new(1);
    let (stream, _) = leases.attach(A, 1).unwrap();
    stream.detach(Nosy(leases.clone()), LEASE);
    tokio::time::advance(LEASE).await;
    assert!(
        leases.attach(B, 1).is_ok(),
        "expired states are dropped outside the lock"
    );
    assert_eq!(leases.sweep(Instant::now()), 0);

    let (first, _) = leases.attach(B, 1).unwrap();
    let (second, _) = leases.attach(B, 1).unwrap();
    first.detach(Nosy(leases.clone()), LEASE);
    second.detach(Nosy(leases.clone()), Duration::ZERO);
    assert_eq!(leases.sweep(Instant::now()), 1);
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_ends_with_the_last_clone() {
    let runtime = tokio::runtime::Handle::current();
    let before = runtime.metrics().num_alive_tasks();
    let leases = Leases::<()>::new(1);
    let clone = leases.clone();
    drop(leases);
    tokio::time::sleep(SWEEP_INTERVAL * 2).await;
    assert_eq!(runtime.metrics().num_alive_tasks(), before + 1);
    drop(clone);
    tokio::time::sleep(SWEEP_INTERVAL * 2).await;
    assert_eq!(runtime.metrics().num_alive_tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_opened_before_does_not_take_the_session_back() {
    let leases = Leases::new(1);
    let (newer, _) = leases.attach(A, 2).unwrap();
    let stale = leases.attach(A, 1).unwrap_err();
    assert_eq!(
        stale,
        AttachError::Stale {
            held: 2,
            requested: 1
        }
    );
    newer.detach("cache", LEASE);
    assert!(
        leases.attach(A, 1).is_err(),
        "not while it is detached either"
    );
    assert_eq!(leases.attach(A, 2).unwrap().1, Some("cache"));
}
