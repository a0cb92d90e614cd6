use std::sync::{Barrier, mpsc};

use super::*;

fn counted(pool: &Threads, parts: usize) -> Vec<usize> {
    let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
    pool.each(parts, &|part| {
        counts[part].fetch_add(1, Ordering::Relaxed);
    });
    counts.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn every_part_is_done_once() {
    for threads in [1, 2, 3, 7] {
        let pool = Threads::new(threads);
        for parts in [0, 1, 2, 3, 6, 7, 8, 100, 1001] {
            assert_eq!(counted(&pool, parts), vec![1; parts], "{threads}");
            let _running = pool.open();
            assert_eq!(counted(&pool, parts), vec![1; parts], "{threads}");
        }
    }
}

#[test]
fn many_jobs_follow_one_another() {
    let pool = Threads::new(3);
    let mut sums = vec![0_u64; 64];
    for job in 0..20_000 {
        let cells: Vec<AtomicU64> = sums.iter().map(|sum| AtomicU64::new(*sum)).collect();
        pool.each(64, &|part| {
            cells[part].fetch_add(job, Ordering::Relaxed);
        });
        sums = cells.into_iter().map(AtomicU64::into_inner).collect();
    }
    assert_eq!(sums, vec![19_999 * 20_000 / 2; 64]);
}

/// Some months of decoding a small model.
#[test]
fn jobs_outnumber_their_numbers() {
    let (done, reports) = mpsc::channel();
    // On a thread of its own, for what it waits for might never come.
    thread::spawn(move || {
        for pool in [Threads::unmanned(3), Threads::new(3)] {
            pool.shared.epoch.0.store((1 << 40) - 2, Ordering::SeqCst);
            for parts in 20..30 {
                let _gone = done.send(counted(&pool, parts) == vec![1; parts]);
            }
        }
    });
    for _ in 0..20 {
        assert_eq!(reports.recv_timeout(Duration::from_secs(20)), Ok(true));
    }
}

#[test]
fn nobody_waits_for_a_thread_that_has_not_begun() {
    let pool = Threads::unmanned(4);
    assert_eq!(counted(&pool, 1001), vec![1; 1001]);
}

#[test]
fn workers_share_the_work() {
    let pool = Threads::new(2);
    let meeting = Barrier::new(2);
    // Neither part ends before the other has begun.
    pool.each(2, &|_| {
        meeting.wait();
    });
}

#[test]
fn sleepers_are_woken() {
    let pool = Threads::new(2);
    for _ in 0..5 {
        while !pool.shared.asleep[1].0.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let meeting = Barrier::new(2);
        pool.each(2, &|_| {
            meeting.wait();
        });
    }
}

#[test]
fn a_running_forward_keeps_workers_awake_and_an_idle_pool_does_not() {
    let pool = Threads::new(2);
    let asleep = || pool.shared.asleep[1].0.load(Ordering::SeqCst);
    let running = pool.open();
    thread::sleep(LINGER * 50);
    assert!(!asleep());
    drop(running);
    let started = Instant::now();
    while !asleep() {
        assert!(started.elapsed() < Duration::from_secs(20), "spins on");
        thread::yield_now();
    }
}

#[test]
fn a_forward_leaves_another_its_core() {
    let pool = Threads::new(2);
    let _first = pool.open();
    assert_eq!(pool.shared.allowed(), 2);
    let second = pool.open();
    assert_eq!(pool.shared.allowed(), 1);
    let caller = thread::current().id();
    pool.each(100, &|_| assert_eq!(thread::current().id(), caller));
    let third = pool.open();
    assert_eq!(pool.shared.allowed(), 0);
    assert_eq!(counted(&pool, 10), vec![1; 10]);
    drop((second, third));
    assert_eq!(pool.shared.allowed(), 2);
}

#[test]
fn a_part_may_share_its_own_work() {
    let pool = Threads::new(2);
    let sum = AtomicUsize::new(0);
    pool.each(8, &|outer| {
        pool.each(8, &|inner| {
            sum.fetch_add(8 * outer + inner, Ordering::Relaxed);
        });
    });
    assert_eq!(sum.into_inner(), 63 * 64 / 2);
}

#[test]
fn callers_at_the_same_time_do_not_mix() {
    let pool = Threads::new(2);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for parts in 1..300 {
                    let _running = pool.open();
                    assert_eq!(counted(&pool, parts), vec![1; parts]);
                }
            });
        }
    });
}

#[test]
fn panics_reach_the_caller_and_the_pool_goes_on() {
    let pool = Threads::new(2);
    for bad in [0, 7] {
        let done = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.each(8, &|part| {
                assert!(part != bad, "part {part} is bad");
                done.fetch_add(1, Ordering::Relaxed);
            });
        }));
        let payload = result.expect_err("the panic is lost");
        let message = payload.downcast_ref::<String>().expect("a message");
        assert_eq!(*message, format!("part {bad} is bad"));
        assert_eq!(done.into_inner(), 7);
        assert_eq!(counted(&pool, 100), vec![1; 100]);
    }
}
