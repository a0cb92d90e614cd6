//! A forward waits a moment for drafts that are about to come.

use std::sync::atomic::AtomicUsize;

use super::*;

/// Far longer than a test takes.
const LONG: Duration = Duration::from_secs(600);

/// Long enough that a forward would have been made.
const MOMENT: Duration = Duration::from_millis(100);

/// A task that waits for long before its third step, unless what it waits for is there.
fn waiting(has_come: &Arc<AtomicBool>) -> (Stream, Receiver<Told>) {
    let (mut task, told) = Stream::new(&[1], 6, Some(Offer::default()));
    let (asked, has_come) = (AtomicUsize::new(0), Arc::clone(has_come));
    task.awaited = Arc::new(move || {
        let is_third = asked.fetch_add(1, Ordering::Relaxed) >= 2;
        if is_third && !has_come.load(Ordering::Relaxed) {
            Awaited::Until(Instant::now() + LONG)
        } else {
            Awaited::Here
        }
    });
    (task, told)
}

/// What is told next, what was asked of drafts left out.
fn next(told: &Receiver<Told>) -> Told {
    loop {
        match told.recv_timeout(PATIENCE).expect("in time") {
            Told::Asked(_) => {}
            other => return other,
        }
    }
}

fn count_steps(told: &Receiver<Told>) -> usize {
    told.try_iter()
        .filter(|told| matches!(told, Told::Step(..)))
        .count()
}

#[test]
fn a_wait_ends_when_drafts_have_come() {
    let bench = Bench::new(|_| {});
    let has_come = Arc::new(AtomicBool::new(false));
    let (task, told) = waiting(&has_come);
    bench.handle.try_submit(SlotId(1), task).unwrap();
    thread::sleep(MOMENT);
    let before = count_steps(&told);
    assert!((1..6).contains(&before), "{before} steps");
    // Not what it waits for: it asks once more, and waits on.
    bench.handle.wake();
    assert!(matches!(next(&told), Told::Waits));
    thread::sleep(MOMENT);
    assert_eq!(count_steps(&told), 0);
    has_come.store(true, Ordering::Relaxed);
    bench.handle.wake();
    assert_eq!(before + steps(&told).len(), 7);
}

#[test]
fn a_wait_ends_when_a_task_comes_that_expects_none() {
    let bench = Bench::new(|_| {});
    let (task, told) = waiting(&Arc::default());
    bench.handle.try_submit(SlotId(1), task).unwrap();
    thread::sleep(MOMENT);
    let before = count_steps(&told);
    assert!(before < 7, "{before} steps");
    let other = bench.try_submit(2, &[1], 0, 20).unwrap();
    assert_eq!(before + steps(&told).len(), 7);
    assert_eq!(other.iter().count(), 21);
}

#[test]
fn nobody_waits_for_drafts_of_others() {
    let bench = Bench::new(|_| {});
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    // It takes drafts and expects none, and is there for longer than the other.
    let (mut others, _told) = Stream::new(&[1], 35, Some(Offer::default()));
    others.gate = Arc::clone(&gate);
    bench.handle.try_submit(SlotId(1), others).unwrap();
    bench.until(|gauges| gauges.queued == 0);
    let (task, told) = waiting(&Arc::default());
    bench.handle.try_submit(SlotId(2), task).unwrap();
    drop(closed);
    assert_eq!(steps(&told).len(), 7);
}

#[test]
fn a_wake_that_nobody_waits_for_is_nothing() {
    let bench = Bench::new(|_| {});
    for _ in 0..1_000 {
        bench.handle.wake();
    }
    assert_eq!(sums(&bench.submit(1, &[1, 2, 3], 2)), [6.0]);
    assert_eq!(at_rest(&bench.handle).forwards, 1);
}
