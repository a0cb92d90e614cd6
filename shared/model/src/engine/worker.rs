//! The loop of the engine thread.

use std::{
    any::Any,
    collections::{HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
    time::Instant,
};

use speculation::ports::{LanguageModel, Rows, Segment};

use super::{
    EngineConfig,
    handle::{Job, Shared},
    running::{Forward, Running},
    slots::SlotTable,
    task::{EngineError, SlotId},
};
use crate::sequence::Sequence;

/// Everything the thread owns.
pub(super) struct Worker<M: LanguageModel> {
    model: M,
    config: EngineConfig,
    receiver: Receiver<Job>,
    shared: Arc<Shared>,
    waiting: VecDeque<Job>,
    running: Vec<Running<M::Cache>>,
    slots: SlotTable<M::Cache>,
    rows: Rows,
}

impl<M: LanguageModel> Worker<M> {
    pub(super) fn new(
        model: M,
        config: EngineConfig,
        receiver: Receiver<Job>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            model,
            config,
            receiver,
            shared,
            waiting: VecDeque::new(),
            running: Vec::new(),
            slots: SlotTable::new(),
            rows: Rows::default(),
        }
    }

    /// Serves until the last handle is gone and the last task done.
    pub(super) fn run(mut self) {
        while self.receive() {
            // A panic of a task or of the model must not take the other sequences with it. Nothing
            // half-changed is used after one: the batch's sequences are dropped.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.turn())) {
                self.fail_batch(&panic_message(panic.as_ref()));
            }
            self.publish();
        }
    }

    /// Takes what was submitted, and waits for it if there is nothing else to do. Returns whether
    /// there is work.
    fn receive(&mut self) -> bool {
        if self.running.is_empty() && self.waiting.is_empty() {
            match self.receiver.recv() {
                Ok(job) => self.waiting.push_back(job),
                Err(_) => return false,
            }
        }
        self.waiting.extend(self.receiver.try_iter());
        true
    }

    /// Admits tasks and makes one forward.
    fn turn(&mut self) {
        self.drop_cancelled();
        self.admit();
        self.plan();
        if self.running.is_empty() {
            return;
        }
        match self.forward() {
            Ok(()) => self.step(),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "forward failed");
                self.end_batch(&EngineError::Forward(Arc::new(error)));
            }
        }
    }

    fn drop_cancelled(&mut self) {
        for cancelled in self
            .running
            .extract_if(.., |running| running.task.is_cancelled())
        {
            self.slots.put(cancelled.slot, cancelled.sequence);
        }
    }

    /// Moves waiting tasks into the batch, in order, as far as there is room; one task a slot.
    fn admit(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut busy: HashSet<SlotId> = self.running.iter().map(|running| running.slot).collect();
        let mut index = 0;
        while let Some(job) = self.waiting.get(index) {
            let (slot, is_task) = match job {
                Job::Run(queued) => (queued.slot, true),
                Job::Free(slot) => (*slot, false),
            };
            let is_cancelled = matches!(job, Job::Run(queued) if queued.task.is_cancelled());
            let full = is_task && self.running.len() == self.config.max_batch.get();
            if !is_cancelled && (full || busy.contains(&slot)) {
                busy.insert(slot);
                index += 1;
                continue;
            }
            match self.waiting.remove(index) {
                Some(Job::Run(queued)) => {
                    self.shared.queued.fetch_sub(1, Ordering::AcqRel);
                    if !is_cancelled {
                        busy.insert(slot);
                        let sequence = self.slots.take(slot);
                        let sequence =
                            sequence.unwrap_or_else(|| Sequence::new(self.model.new_cache()));
                        self.running.push(Running::new(queued, sequence));
                    }
                }
                Some(Job::Free(slot)) => drop(self.slots.take(slot)),
                None => return,
            }
        }
        let room = self
            .config
            .max_sequences
            .get()
            .saturating_sub(self.running.len());
        self.slots.evict_beyond(room);
    }

    /// Decides what the next forward does for each task; those that ask for the impossible end
    /// here, and take nobody with them.
    fn plan(&mut self) {
        let shape = self.model.shape();
        let chunk = self.config.prefill_chunk.get();
        let mut index = 0;
        while let Some(running) = self.running.get_mut(index) {
            match running.plan(shape, chunk) {
                Ok(()) => index += 1,
                Err(error) => {
                    let running = self.running.remove(index);
                    self.slots.put(running.slot, running.sequence);
                    running.task.fail(error);
                }
            }
        }
    }

    /// One forward of all tasks' segments.
    fn forward(&mut self) -> Result<(), M::Error> {
        let started = Instant::now();
        self.rows.want_hidden = self
            .running
            .iter()
            .any(|running| running.task.wants_hidden());
        let mut segments: Vec<Segment<'_, M::Cache>> =
            self.running.iter_mut().map(Running::segment).collect();
        let sequences = segments.len();
        let tokens = segments.iter().map(|segment| segment.tokens.len()).sum();
        self.model.forward(&mut segments, &mut self.rows)?;
        let forward = Forward {
            started,
            elapsed: started.elapsed(),
            tokens,
            sequences,
        };
        for running in &mut self.running {
            running.forwarded(forward);
        }
        Ok(())
    }

    /// Hands every task its rows, and lets those go that are done.
    fn step(&mut self) {
        let shape = self.model.shape();
        let mut logits = self.rows.logits.as_mut_slice();
        let mut hidden = self.rows.hidden.as_slice();
        for running in self.running.iter_mut().filter(|running| running.rows() > 0) {
            let (own, rest) = logits.split_at_mut(running.rows() * shape.vocab_size);
            logits = rest;
            let own_hidden = hidden.split_off(..running.rows() * shape.hidden_size);
            running.step(own, own_hidden.unwrap_or_default(), shape);
        }
        for done in self.running.extract_if(.., |running| running.done) {
            self.slots.put(done.slot, done.sequence);
        }
    }

    /// Fails the tasks of the batch; their sequences are as before.
    fn end_batch(&mut self, error: &EngineError) {
        for running in self.running.drain(..) {
            self.slots.put(running.slot, running.sequence);
            running.task.fail(error.clone());
        }
    }

    /// Fails the tasks of the batch after a panic, and drops their sequences.
    fn fail_batch(&mut self, message: &str) {
        tracing::error!(
            message,
            tasks = self.running.len(),
            "panic on the engine thread"
        );
        self.shared.healthy.store(false, Ordering::Release);
        let error = EngineError::Panicked {
            message: message.into(),
        };
        for running in self.running.drain(..) {
            let error = error.clone();
            // The task that panicked may do so again.
            let _panic = catch_unwind(AssertUnwindSafe(|| running.task.fail(error)));
        }
    }

    fn publish(&self) {
        let running_tokens: usize = self
            .running
            .iter()
            .map(|running| running.sequence.tokens().len())
            .sum();
        let shared = &self.shared;
        shared.running.store(self.running.len(), Ordering::Relaxed);
        shared
            .sequences
            .store(self.running.len() + self.slots.len(), Ordering::Relaxed);
        shared
            .cached_tokens
            .store(running_tokens + self.slots.tokens(), Ordering::Relaxed);
    }
}

impl<M: LanguageModel> Drop for Worker<M> {
    fn drop(&mut self) {
        self.shared.healthy.store(false, Ordering::Release);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
