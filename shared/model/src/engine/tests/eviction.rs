//! Whose memory goes when that of the running tasks does not suffice.

use super::generating::small_model;
#[cfg(feature = "device")]
use super::generating::small_model_on_a_device;
use super::progress::{Listen, Report};
use super::*;
use crate::Model;

#[test]
fn of_running_tasks_the_youngest_makes_room_and_waits() {
    the_youngest_makes_room(small_model(None));
}

#[cfg(feature = "device")]
#[test]
fn on_a_device_too_the_youngest_makes_room_and_no_other() {
    the_youngest_makes_room(small_model_on_a_device());
}

fn the_youngest_makes_room(model: Model) {
    // Room for three runs of 64 tokens: one for each task, until the oldest grows out of its first.
    let config = EngineConfig {
        kv_tokens: 3 * 64,
        prefill_time: None,
        ..EngineConfig::default()
    };
    let (handle, thread) = spawn(model, config, "small").unwrap();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let submit = |slot, prompt, extra| {
        let (reported, receiver) = channel();
        let task = Listen {
            tokens: vec![1; prompt],
            extra,
            gate: Arc::clone(&gate),
            reported,
        };
        handle.try_submit(SlotId(slot), task).unwrap();
        receiver
    };
    // The first step holds the engine up until all have been submitted.
    let [oldest, second, youngest] = [submit(0, 60, 20), submit(1, 10, 40), submit(2, 10, 40)];
    drop(closed);
    let steps = |reported: Receiver<Report>| -> Vec<usize> {
        let forwarded = |reported| match reported {
            Report::Step(forwarded) => forwarded,
            Report::Prefilled(..) => panic!("no prompt is that long"),
        };
        reported.iter().map(forwarded).collect()
    };
    assert_eq!(steps(oldest), [vec![60], vec![1; 20]].concat());
    assert_eq!(steps(second), [vec![10], vec![1; 40]].concat());
    let youngest = steps(youngest);
    let again: Vec<usize> = youngest[1..].iter().copied().filter(|&n| n > 1).collect();
    // It has the first row with 4 tokens to go until the oldest needs more.
    assert!(
        again.len() == 1 && (11..=15).contains(&again[0]),
        "{youngest:?}"
    );
    assert_eq!(youngest.len(), 41);
    drop(handle);
    thread.join().unwrap();
}
