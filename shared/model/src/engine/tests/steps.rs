//! Steps that share threads.

use std::{collections::HashSet, thread, time::Instant};

use speculation::ports::{LanguageModel, ModelShape};

use super::{
    toy::{Toy, ToyCache},
    *,
};
use crate::{
    cpu::Threads,
    engine::{
        handle::Queued,
        running::RunningTask,
        worker::steps::{TaskStep, share},
    },
    sequence::CachedSequence,
};

/// Tells the thread it stepped on and the first of its logits, after a while.
struct Tell(Sender<(thread::ThreadId, f32)>);

impl Task for Tell {
    fn tokens(&self) -> &[u32] {
        &[1]
    }

    fn scored_from(&self) -> usize {
        0
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        thread::sleep(Duration::from_millis(20));
        let reported = (thread::current().id(), rows.logits[0]);
        self.0.send(reported).unwrap();
        TaskProgress::Done
    }

    fn fail(self: Box<Self>, error: TaskError) {
        panic!("{error}");
    }
}

#[test]
fn steps_share_threads_and_each_gets_its_own_rows() {
    const TASKS: usize = 4;
    let (reported, receiver) = channel();
    let shape: ModelShape = Toy::default().shape();
    let mut running: Vec<RunningTask<ToyCache>> = (0..TASKS)
        .map(|slot| {
            let queued = Queued {
                slot: SlotId(slot as u64),
                tenant: None,
                task: Box::new(Tell(reported.clone())),
                since: Instant::now(),
            };
            RunningTask::new(queued, CachedSequence::new(ToyCache::default(), &[], 0))
        })
        .collect();
    let mut logits: Vec<f32> = (0..TASKS)
        .flat_map(|task| vec![task as f32; shape.vocab_size])
        .collect();
    let hidden = [0.0; TASKS];
    let steps = (running.iter_mut())
        .zip(logits.chunks_mut(shape.vocab_size))
        .zip(hidden.chunks(1))
        .map(|((running, logits), hidden)| TaskStep {
            running,
            logits,
            hidden,
        });
    share(&Threads::new(2), steps.collect(), shape);
    assert!(running.iter().all(|running| running.done));
    let reported: Vec<_> = receiver.try_iter().collect();
    let threads: HashSet<_> = reported.iter().map(|(thread, _)| *thread).collect();
    assert_eq!(threads.len(), 2);
    let mut first: Vec<f32> = reported.iter().map(|(_, logit)| *logit).collect();
    first.sort_by(f32::total_cmp);
    assert_eq!(first, [0.0, 1.0, 2.0, 3.0]);
}
