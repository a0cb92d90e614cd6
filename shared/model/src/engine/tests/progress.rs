//! How far a task is told to be while its prefill is cut into chunks.

use super::*;

/// Scores its last token, then decodes `extra` more, each a 1; tells whatever it is told, with the gate open.
pub(super) struct Listen {
    pub(super) tokens: Vec<u32>,
    pub(super) extra: usize,
    pub(super) gate: Arc<Mutex<()>>,
    pub(super) reported: Sender<Report>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    Prefilled(usize, usize),
    Step(usize),
}

impl Task for Listen {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        self.reported.send(Report::Prefilled(done, total)).unwrap();
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        let _gate = self.gate.lock();
        let forwarded = rows.timing.forwarded_tokens;
        self.reported.send(Report::Step(forwarded)).unwrap();
        if self.extra == 0 {
            return TaskProgress::Done;
        }
        self.extra -= 1;
        self.tokens.push(1);
        TaskProgress::Continue
    }

    fn fail(self: Box<Self>, error: TaskError) {
        panic!("{error}");
    }
}

fn listen(bench: &Bench, slot: u64, tokens: Vec<u32>, extra: usize) -> Receiver<Report> {
    let (reported, receiver) = channel();
    let task = Listen {
        tokens,
        extra,
        gate: Arc::default(),
        reported,
    };
    bench.handle.try_submit(SlotId(slot), task).unwrap();
    receiver
}

#[test]
fn each_chunk_of_a_prefill_is_told_and_no_other_forward() {
    let bench = Bench::new(|config| config.prefill_chunk = bound(4));
    let reported: Vec<Report> = listen(&bench, 1, vec![1; 11], 2).iter().collect();
    let prefilled = [Report::Prefilled(4, 11), Report::Prefilled(8, 11)];
    assert_eq!(reported[..2], prefilled);
    assert_eq!(
        reported[2..],
        [Report::Step(11), Report::Step(1), Report::Step(1)]
    );
    // What the slot holds is not forwarded, and does not count.
    let reported: Vec<Report> = listen(&bench, 1, vec![1; 19], 0).iter().collect();
    assert_eq!(reported, [Report::Prefilled(4, 6), Report::Step(6)]);
}

#[test]
fn each_task_of_a_batch_is_told_of_its_own_prefill() {
    let bench = Bench::new(|config| config.prefill_chunk = bound(4));
    let gate = bench.hold();
    let short = listen(&bench, 1, vec![2; 3], 1);
    let long = listen(&bench, 2, vec![3; 10], 0);
    drop(gate);
    let short: Vec<Report> = short.iter().collect();
    assert_eq!(short, [Report::Step(3), Report::Step(1)]);
    let long: Vec<Report> = long.iter().collect();
    let prefilled = [Report::Prefilled(4, 10), Report::Prefilled(8, 10)];
    assert_eq!(long[..2], prefilled);
    assert_eq!(long[2..], [Report::Step(10)]);
}
