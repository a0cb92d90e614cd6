//! Sequences that come and go, and share forwards.

use std::{sync::atomic::AtomicUsize, thread, time::Instant};

use super::{toy::Toy, *};

/// The time of a forward, whatever the number of its rows.
const FORWARD: Duration = Duration::from_millis(20);

/// Scores a block on `slot` again and again, and is away for a while in between.
fn come_and_go(bench: &Bench, slot: u64, away: Duration, done: &AtomicUsize) {
    let mut tokens = vec![1];
    while done.load(Ordering::Relaxed) < 40 {
        let scored_from = tokens.len() - 1;
        tokens.truncate(30);
        sums(&bench.submit(slot, &tokens, scored_from.min(tokens.len() - 1)));
        done.fetch_add(1, Ordering::Relaxed);
        tokens.push(1);
        thread::sleep(away);
    }
}

/// Two sequences that begin half a forward apart would never share one: each gets its forward while the other is
/// away. With a short wait they come to share their forwards.
#[test]
fn sequences_that_come_and_go_come_to_share_forwards() {
    let toy = Toy {
        forward_time: FORWARD,
        ..Toy::default()
    };
    let bench = Bench::of(toy, |_| {});
    let done = AtomicUsize::new(0);
    let away = FORWARD * 2 / 5;
    thread::scope(|scope| {
        scope.spawn(|| come_and_go(&bench, 1, away, &done));
        thread::sleep(FORWARD / 2);
        scope.spawn(|| come_and_go(&bench, 2, away, &done));
    });
    let forwards = bench.forwards();
    let settled = &forwards[forwards.len() / 2..];
    let shared = settled.iter().filter(|sizes| sizes.len() == 2).count();
    assert!(2 * shared > settled.len(), "{forwards:?}");
}

/// A sequence that is decoded alone is never kept waiting for one that comes and goes.
#[test]
fn who_decodes_on_waits_for_nobody() {
    let toy = Toy {
        forward_time: FORWARD,
        ..Toy::default()
    };
    let bench = Bench::of(toy, |_| {});
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| come_and_go(&bench, 1, FORWARD / 2, &done));
        let began = Instant::now();
        let decoding = bench.try_submit(2, &[1], 0, 14).unwrap();
        assert_eq!(decoding.iter().count(), 15);
        let took = began.elapsed();
        // Fifteen forwards and the one that was under way, with a quarter to spare.
        assert!(took < FORWARD * 20, "{took:?}");
        done.store(usize::MAX / 2, Ordering::Relaxed);
    });
}

/// The engine measures the time of a row from forwards with different numbers of rows.
#[test]
fn what_a_row_costs_is_measured() {
    let toy = Toy {
        forward_time: FORWARD / 4,
        token_time: FORWARD / 10,
        ..Toy::default()
    };
    let bench = Bench::of(toy, |_| {});
    let mut row = Duration::ZERO;
    for turn in 0..12 {
        let tokens = vec![1; 1 + turn % 4 * 2];
        let report = bench.submit(100 + turn as u64, &tokens, 0);
        row = report.recv_timeout(PATIENCE).unwrap().unwrap().1.row;
    }
    let ratio = row.as_secs_f64() / (FORWARD / 10).as_secs_f64();
    assert!((0.6..2.0).contains(&ratio), "{row:?}");
    bench.until(|gauges| gauges.running == 0);
    assert!(bench.handle.stats().row > Duration::ZERO);
}

/// A full batch admits no further task, so its forward does not wait.
#[test]
fn a_full_batch_waits_for_nobody() {
    let toy = Toy {
        forward_time: FORWARD,
        ..Toy::default()
    };
    let bench = Bench::of(toy, |config| config.max_batch = bound(1));
    let done = AtomicUsize::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        for slot in 1..=3 {
            let (bench, done) = (&bench, &done);
            scope.spawn(move || come_and_go(bench, slot, FORWARD * 2 / 5, done));
        }
    });
    // About forty forwards one after another, with a quarter to spare.
    assert!(began.elapsed() < FORWARD * 53, "{:?}", began.elapsed());
}
