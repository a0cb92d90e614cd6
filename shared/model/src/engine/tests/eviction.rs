//! Whose memory goes when that of the running tasks does not suffice.

use super::generating::small_model;
use super::*;

/// Decodes `extra` tokens, and reports how many were forwarded in each step. Each step waits for the gate.
struct Decode {
    tokens: Vec<u32>,
    extra: usize,
    gate: Arc<Mutex<()>>,
    forwarded: Sender<usize>,
}

impl Task for Decode {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn step(&mut self, rows: StepRows<'_>) -> Progress {
        let _gate = self.gate.lock();
        self.forwarded
            .send(rows.figures().forwarded_tokens)
            .unwrap();
        if self.extra == 0 {
            return Progress::Done;
        }
        self.extra -= 1;
        self.tokens.push(1);
        Progress::Continue
    }

    fn fail(self: Box<Self>, error: EngineError) {
        panic!("{error}");
    }
}

#[test]
fn of_running_tasks_the_youngest_makes_room_and_waits() {
    // Room for three runs of 64 tokens: one for each task, until the oldest grows out of its first.
    let config = EngineConfig {
        kv_tokens: Some(bound(3 * 64)),
        ..EngineConfig::default()
    };
    let (handle, thread) = spawn(small_model(None), config, "small").unwrap();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let submit = |slot, prompt, extra| {
        let (forwarded, receiver) = channel();
        let task = Decode {
            tokens: vec![1; prompt],
            extra,
            gate: Arc::clone(&gate),
            forwarded,
        };
        handle.try_submit(SlotId(slot), task).unwrap();
        receiver
    };
    // The first step holds the engine up until all have been submitted.
    let [oldest, second, youngest] = [submit(0, 60, 20), submit(1, 10, 40), submit(2, 10, 40)];
    drop(closed);
    let steps = |forwarded: Receiver<usize>| -> Vec<usize> { forwarded.iter().collect() };
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
