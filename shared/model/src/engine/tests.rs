mod batch;
mod drafts;
mod eviction;
mod exhaustion;
mod gather;
mod generating;
mod memory;
mod progress;
mod reuse;
mod sequences;
mod sources;
mod steps;
mod toy;
mod trees;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use self::toy::{Bench, FAILING, PANICKING, PATIENCE, Report, Score, bound, sums};
use super::*;

#[test]
fn a_task_gets_the_rows_it_asks_for() {
    let bench = Bench::new(|_| {});
    let report = bench.submit(1, &[1, 2, 3, 4], 2);
    let (sums, figures) = report.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(sums, [6.0, 10.0]);
    assert_eq!((figures.forwarded_tokens, figures.batch_tokens), (4, 4));
    assert_eq!(figures.batch_sequences, 1);
    assert!(figures.forward > Duration::ZERO);
}

#[test]
fn what_runs_is_told_while_it_runs() {
    let bench = Bench::new(|_| {});
    let gate = bench.toy.gate.lock().unwrap();
    let reports = [1, 2].map(|slot| bench.submit(slot, &[1, 2], 1));
    // The first may have been taken alone; the other then waits for it.
    bench.until(|gauges| gauges.running > 0 && gauges.running + gauges.queued == 2);
    drop(gate);
    assert!(reports.iter().all(|report| sums(report) == [3.0]));
    bench.until(|gauges| gauges.running == 0);
}

#[test]
fn only_what_the_cache_lacks_is_forwarded() {
    let bench = Bench::new(|_| {});
    sums(&bench.submit(1, &[1, 2, 3, 4, 5], 2));
    // 4 accepted, 5 refused, 7 drafted.
    assert_eq!(sums(&bench.submit(1, &[1, 2, 3, 4, 6, 7], 4)), [16.0, 23.0]);
    assert_eq!(bench.forwards(), [[5], [2]]);
    bench.handle.free(SlotId(1));
    assert_eq!(sums(&bench.submit(1, &[1, 2], 1)), [3.0]);
    assert_eq!(bench.forwards(), [[2]]);
}

#[test]
fn a_long_prompt_is_cut_and_others_run_meanwhile() {
    let bench = Bench::new(|config| config.prefill_chunk = bound(4));
    let gate = bench.toy.gate.lock().unwrap();
    let short = bench.try_submit(2, &[3], 0, 2).unwrap();
    bench.until(|gauges| gauges.queued == 0);
    let long = bench.submit(1, &[1; 11], 9);
    drop(gate);
    assert_eq!(sums(&long), [10.0, 11.0]);
    for sum in [3.0, 4.0, 5.0] {
        assert_eq!(sums(&short), [sum]);
    }
    assert_eq!(bench.forwards(), [vec![1], vec![1, 4], vec![1, 4], vec![3]]);
}

#[test]
fn tasks_of_one_slot_run_one_after_another() {
    let bench = Bench::new(|_| {});
    let gate = bench.toy.gate.lock().unwrap();
    let first = bench.submit(1, &[1, 2], 1);
    let second = bench.submit(1, &[1, 2, 3], 2);
    bench.handle.free(SlotId(1));
    let third = bench.submit(1, &[1, 2, 3, 4], 3);
    drop(gate);
    let found = [sums(&first), sums(&second), sums(&third)];
    assert_eq!(found, [[3.0], [6.0], [10.0]]);
    // The slot was freed before the third.
    assert_eq!(bench.forwards(), [[2], [1], [4]]);
}

#[test]
fn a_full_queue_and_a_stopped_engine_are_told_apart() {
    let bench = Bench::new(|config| {
        config.max_queue = bound(2);
        config.max_batch = bound(1);
    });
    let gate = bench.toy.gate.lock().unwrap();
    let mut reports = vec![bench.submit(0, &[1], 0)];
    bench.until(|gauges| gauges.queued == 0);
    reports.extend((1..3).map(|slot| bench.submit(slot, &[1], 0)));
    let refused = bench.try_submit(3, &[1], 0, 0).unwrap_err();
    assert_eq!(refused, Rejected::Full { capacity: 2 });
    drop(gate);
    assert!(reports.iter().all(|report| sums(report) == [1.0]));
    assert_eq!(bench.forwards(), [[1], [1], [1]]);
}

#[test]
fn the_last_handle_lets_the_thread_finish_and_end() {
    let bench = Bench::new(|_| {});
    let gate = bench.toy.gate.lock().unwrap();
    let report = bench.try_submit(1, &[1], 0, 3).unwrap();
    drop(bench.handle);
    drop(gate);
    bench.thread.join().unwrap();
    assert_eq!(report.iter().count(), 4);
}

#[test]
fn impossible_tasks_fail_alone() {
    let bench = Bench::new(|_| {});
    let gate = bench.toy.gate.lock().unwrap();
    let first = bench.submit(0, &[1], 0);
    let good = bench.submit(1, &[1], 0);
    let no_row = bench.submit(2, &[1], 1);
    let unknown = bench.submit(3, &[1, 50], 0);
    let long = bench.submit(4, &[1; 41], 40);
    drop(gate);
    assert_eq!(sums(&first), sums(&good));
    let no_row_told = "scored_from is 1, the task has 1 tokens: no row is wanted";
    let long_told = "the model holds 40 tokens a sequence, this one would have 41";
    for (report, reported) in [
        (no_row, no_row_told),
        (unknown, "token 50 is not in the vocabulary of 50"),
        (long, long_told),
    ] {
        let error = report.recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_eq!(error.to_string(), reported);
    }
    assert!(bench.handle.is_healthy());
}

#[test]
fn a_failed_forward_fails_its_batch_and_no_more() {
    let bench = Bench::new(|_| {});
    sums(&bench.submit(1, &[1, 2], 0));
    let failed = bench.submit(1, &[1, 2, FAILING], 2);
    let error = failed.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(matches!(error, TaskError::Forward(_)));
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "the toy was told to fail");
    assert_eq!(sums(&bench.submit(1, &[1, 2, 3], 2)), [6.0]);
    // The cache outlived the failure.
    assert_eq!(bench.forwards(), [[2], [1]]);
    assert!(bench.handle.is_healthy());
}

#[test]
fn a_panic_drops_the_sequences_of_its_batch_and_is_remembered() {
    let bench = Bench::new(|_| {});
    sums(&bench.submit(1, &[1, 2], 1));
    sums(&bench.submit(2, &[1, 2], 1));
    let failed = bench.submit(1, &[1, 2, PANICKING], 2);
    let error = failed.recv_timeout(PATIENCE).unwrap().unwrap_err();
    let reported = "the engine panicked: the toy was told to panic";
    assert_eq!(error.to_string(), reported);
    assert!(!bench.handle.is_healthy());
    bench.forwards();
    assert_eq!(sums(&bench.submit(1, &[1, 2, 3], 2)), [6.0]);
    assert_eq!(sums(&bench.submit(2, &[1, 2, 3], 2)), [6.0]);
    // The first sequence is gone, the second is not.
    assert_eq!(bench.forwards(), [[3], [1]]);
}

#[test]
fn cancelled_tasks_are_dropped_wherever_they_are() {
    let bench = Bench::new(|config| config.max_batch = bound(1));
    let gate = bench.toy.gate.lock().unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    let submit = |slot| {
        let (mut task, receiver) = Score::sums(&[1]);
        task.extra = 30;
        task.cancelled = cancelled.clone();
        bench.handle.try_submit(SlotId(slot), task).unwrap();
        receiver
    };
    let (running, waiting) = (submit(1), submit(2));
    bench.until(|gauges| gauges.queued == 1);
    cancelled.store(true, Ordering::Relaxed);
    drop(gate);
    assert!(running.iter().count() <= 1);
    assert_eq!(waiting.iter().count(), 0);
    bench.until(|gauges| gauges.running == 0 && gauges.queued == 0);
}

#[test]
fn idle_sequences_are_evicted_beyond_the_bound() {
    let bench = Bench::new(|config| config.max_cached_sequences = bound(2));
    for slot in 1..=3 {
        sums(&bench.submit(slot, &[1, 2], 1));
    }
    bench.until(|gauges| gauges.running == 0);
    bench.forwards();
    assert_eq!(sums(&bench.submit(3, &[1, 2, 3], 2)), [6.0]);
    assert_eq!(sums(&bench.submit(1, &[1, 2, 3], 2)), [6.0]);
    assert_eq!(bench.forwards(), [[1], [3]], "the first slot was evicted");
    let held = |stats: &EngineStats| (stats.running + stats.queued, stats.sequences);
    bench.until(|stats| held(&stats) == (0, 2) && stats.cached_tokens == 6);
    bench.handle.free(SlotId(1));
    bench.handle.free(SlotId(3));
    bench.until(|stats| held(&stats) == (0, 0) && stats.cached_tokens == 0);
}
