//! Handing tasks their rows.

use std::time::Instant;

use parking_lot::Mutex;
use speculation::ports::{KvCache, LanguageModel, ModelShape};

use super::{Worker, planned};
use crate::{cpu::Threads, engine::running::RunningTask};

/// Logits of a forward from which on its tasks' steps share the threads: with fewer, to wake them takes longer
/// than a step.
const SHARED_FROM: usize = 16 << 10;

/// A task, and the rows it gets.
pub(in crate::engine) struct TaskStep<'a, C> {
    pub(in crate::engine) running: &'a mut RunningTask<C>,
    pub(in crate::engine) logits: &'a mut [f32],
    pub(in crate::engine) hidden: &'a [f32],
}

impl<M: LanguageModel> Worker<M>
where
    M::Cache: Send,
{
    /// Hands every task its rows, or tells it how far it is, and lets those go that are done.
    pub(super) fn step(&mut self) {
        let shape = self.model.shape();
        let mut logits = self.rows.logits.as_mut_slice();
        let mut hidden = self.rows.hidden.as_slice();
        let is_small = logits.len() < SHARED_FROM;
        let mut steps = Vec::new();
        for running in self.running.iter_mut().filter(|running| running.rows() > 0) {
            let rows = running.rows();
            let own = logits.split_off_mut(..rows * shape.vocab_size);
            let own_hidden = hidden.split_off(..rows * shape.hidden_size);
            steps.push(TaskStep {
                running,
                logits: own.unwrap_or_default(),
                hidden: own_hidden.unwrap_or_default(),
            });
        }
        if is_small || steps.len() < 2 {
            for step in steps {
                step.running.step(step.logits, step.hidden, shape);
            }
        } else {
            share(&self.threads, steps, shape);
        }
        planned(&mut self.running).for_each(RunningTask::tell_progress);
        let now = Instant::now();
        for done in self.running.extract_if(.., |running| running.done) {
            self.gather.left(done.slot, now);
            self.slots.put(done.slot, done.tenant, done.sequence);
        }
    }
}

/// Runs the steps on `threads`. They compute distributions of whole vocabularies, and the threads have nothing
/// else to do between two forwards. Each works on rows of its own, so what it computes does not depend on this.
pub(in crate::engine) fn share<C>(threads: &Threads, steps: Vec<TaskStep<'_, C>>, shape: ModelShape)
where
    C: KvCache + Send,
{
    let steps: Vec<_> = (steps.into_iter())
        .map(|step| Mutex::new(Some(step)))
        .collect();
    let _awake = threads.open();
    threads.each(steps.len(), &|index| {
        if let Some(step) = steps[index].lock().take() {
            step.running.step(step.logits, step.hidden, shape);
        }
    });
}
