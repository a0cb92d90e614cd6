//! The loop of the engine thread.

mod batch;
mod drafts;
mod reuse;
pub(super) mod steps;

use std::{
    any::Any,
    collections::{HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
    time::{Duration, Instant},
};

use speculation::goodput::CostLine;
use speculation::ports::{KvCache, LanguageModel, Rows};

use super::{
    EngineConfig,
    budget::KvBudget,
    gather::Gather,
    handle::{EngineJob, EngineState},
    pace::PromptPace,
    prefixes::Prefixes,
    running::{Forward, RunningTask},
    slots::SlotTable,
    task::{SlotId, TaskError},
};
use crate::cpu::Threads;
use drafts::DraftRows;

/// Share of an earlier forward's weight that is left after each forward, in the measurement of what rows cost. About
/// fifty forwards count.
const ROWS_MEMORY: f64 = 0.98;

/// Everything the thread owns.
pub(super) struct Worker<M: LanguageModel> {
    pub(super) model: M,
    pub(super) config: EngineConfig,
    pub(super) budget: KvBudget,
    receiver: Receiver<EngineJob>,
    pub(super) shared: Arc<EngineState>,
    waiting: VecDeque<EngineJob>,
    /// The oldest first.
    pub(super) running: Vec<RunningTask<M::Cache>>,
    pub(super) slots: SlotTable<M::Cache>,
    pub(super) prefixes: Prefixes<M::Cache>,
    rows: Rows,
    pub(super) pace: PromptPace,
    /// Seconds of forwards without prompts, as a line of their rows.
    pub(super) rows_cost: CostLine,
    pub(super) gather: Gather,
    pub(super) drafts: DraftRows,
    /// What tasks' steps share.
    threads: Arc<Threads>,
}

impl<M: LanguageModel> Worker<M>
where
    M::Cache: Send,
{
    pub(super) fn new(
        model: M,
        config: EngineConfig,
        budget: KvBudget,
        receiver: Receiver<EngineJob>,
        shared: Arc<EngineState>,
    ) -> Self {
        Self {
            model,
            config,
            budget,
            receiver,
            shared,
            waiting: VecDeque::new(),
            running: Vec::new(),
            slots: SlotTable::new(),
            prefixes: Prefixes::new(),
            rows: Rows::default(),
            rows_cost: CostLine::new(ROWS_MEMORY, 0.0),
            gather: Gather::default(),
            drafts: DraftRows::new(ROWS_MEMORY),
            pace: PromptPace::new(config.prefill_time, config.max_batch_tokens.get()),
            threads: Threads::all(),
        }
    }

    /// Serves until the last handle is gone and the last task done.
    pub(super) fn run(mut self) {
        self.publish();
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
                Ok(job) => self.take(job),
                Err(_) => return false,
            }
        }
        while let Ok(job) = self.receiver.try_recv() {
            self.take(job);
        }
        true
    }

    fn take(&mut self, job: EngineJob) {
        match job {
            // Whoever was to wake is awake.
            EngineJob::Wake => {}
            EngineJob::Run(_) | EngineJob::Free(_) => self.waiting.push_back(job),
        }
    }

    /// Admits tasks and makes one forward.
    fn turn(&mut self) {
        self.drop_cancelled();
        self.admit();
        if self.gathers() || self.awaits_drafts() {
            return;
        }
        self.reconcile();
        self.follow();
        self.make_room();
        self.share_tokens();
        self.give_drafts();
        if !self.running.iter().any(RunningTask::is_planned) {
            return;
        }
        // Most of the time passes in forwards, so this is what is seen.
        self.publish();
        match self.forward().or_else(|error| self.forward_again(error)) {
            Ok(()) => self.step(),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "forward failed");
                self.end_batch(&TaskError::Forward(Arc::new(error)));
            }
        }
    }

    /// Waits for a task whose sequence is about to come back, as [`Gather`] says. Returns whether one came.
    fn gathers(&mut self) -> bool {
        // A full batch admits no further task, and a task that a forward left out must not wait again: the forward begins
        // at once.
        let blocks: usize = self.running.iter().map(RunningTask::block).sum();
        let is_full = self.running.len() >= self.config.max_batch.get()
            || blocks >= self.config.max_batch_tokens.get()
            || self.running.iter().any(|own| own.waited > 0);
        if is_full {
            self.gather.begins();
            return false;
        }
        let now = Instant::now();
        let ready = self.running.iter().map(|own| (own.slot, own.is_new()));
        // While all forwards have the same number of rows, all of their time counts as fixed.
        let fixed = f64::midpoint(self.rows_cost.fixed(), self.rows_cost.mean());
        let fixed = Duration::from_secs_f64(fixed);
        if let Some(until) = self.gather.until(&ready, fixed, now)
            && let Ok(job) = self.receiver.recv_timeout(until - now)
        {
            self.take(job);
            return true;
        }
        self.gather.begins();
        false
    }

    /// The time that one more row adds to a forward.
    fn row(&self) -> Duration {
        Duration::from_secs_f64(self.rows_cost.slope())
    }

    fn drop_cancelled(&mut self) {
        for cancelled in self
            .running
            .extract_if(.., |running| running.task.is_cancelled())
        {
            self.gather.left(cancelled.slot, Instant::now());
            self.slots
                .put(cancelled.slot, cancelled.tenant, cancelled.sequence);
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
                EngineJob::Run(queued) => (queued.slot, true),
                EngineJob::Free(slot) => (*slot, false),
                // A wake-up carries no work, so it is dropped.
                EngineJob::Wake => return,
            };
            let is_cancelled = matches!(job, EngineJob::Run(queued) if queued.task.is_cancelled());
            let full = is_task && self.running.len() == self.config.max_batch.get();
            if !is_cancelled && (full || busy.contains(&slot)) {
                busy.insert(slot);
                index += 1;
                continue;
            }
            match self.waiting.remove(index) {
                Some(EngineJob::Run(queued)) => {
                    self.shared.queued.fetch_sub(1, Ordering::AcqRel);
                    if !is_cancelled {
                        busy.insert(slot);
                        self.gather.came(slot, queued.since);
                        let task = self.begin(queued);
                        self.running.push(task);
                    }
                }
                Some(EngineJob::Free(slot)) => self.free(slot),
                Some(EngineJob::Wake) | None => return,
            }
        }
        let room = self
            .config
            .max_cached_sequences
            .get()
            .saturating_sub(self.running.len());
        let evicted = self.slots.evict_beyond(room);
        self.count_evictions(evicted);
        let held = self.running.len() + self.slots.len();
        let most = self.model.caps().max_sequences;
        self.prefixes.evict_beyond(most.saturating_sub(held));
    }

    /// Brings each sequence to what its task wants; tasks that ask for the impossible end here, and take
    /// nobody with them.
    fn reconcile(&mut self) {
        let (shape, caps) = (self.model.shape(), self.model.caps());
        let mut index = 0;
        while let Some(running) = self.running.get_mut(index) {
            match running.reconcile(shape, caps) {
                Ok(()) => index += 1,
                Err(error) => {
                    let running = self.running.remove(index);
                    self.end(running, error);
                }
            }
        }
    }

    /// Fails a task; its sequence is as before.
    pub(super) fn end(&mut self, running: RunningTask<M::Cache>, error: TaskError) {
        self.gather.left(running.slot, Instant::now());
        self.slots
            .put(running.slot, running.tenant, running.sequence);
        running.task.fail(error);
    }

    /// One forward of all tasks' segments.
    fn forward(&mut self) -> Result<(), M::Error> {
        let started = Instant::now();
        let (mut prefilled, mut read) = (0, 0);
        self.rows.want_hidden = false;
        for running in planned(&mut self.running) {
            prefilled += running.prefilled();
            read += running.unread();
            running.encode(&mut self.model)?;
            self.rows.want_hidden |= running.task.wants_hidden();
        }
        let mut segments: Vec<_> = planned(&mut self.running)
            .map(RunningTask::segment)
            .collect();
        let sequences = segments.len();
        let tokens = segments.iter().map(|segment| segment.tokens.len()).sum();
        self.model.forward(&mut segments, &mut self.rows)?;
        let forward = Forward {
            started,
            elapsed: started.elapsed(),
            tokens,
            sequences,
            row: self.row(),
            price: self.drafts.price as f32,
        };
        // Sources are read whole: they say nothing of what tokens take.
        match (prefilled, read) {
            (0, 0) => {
                let seconds = forward.elapsed.as_secs_f64();
                self.rows_cost.observe(tokens as f64, seconds);
                self.drafts.observe(&self.running, &self.rows_cost, seconds);
            }
            (_, 0) => self.pace.measured(tokens, forward.elapsed),
            _ => {}
        }
        let forwarded = planned(&mut self.running).map(|running| running.forwarded(forward));
        let again: usize = forwarded.sum();
        let mut stats = self.shared.stats.lock();
        stats.reprefilled_tokens += again as u64;
        stats.forwards += 1;
        stats.forwarded_tokens += (tokens + read) as u64;
        stats.prefill_tokens += prefilled as u64;
        stats.busy += forward.elapsed;
        Ok(())
    }

    /// Fails the tasks of the forward; their sequences are as before.
    fn end_batch(&mut self, error: &TaskError) {
        let (failed, waiting) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(RunningTask::is_planned);
        self.running = waiting;
        let failed: Vec<RunningTask<M::Cache>> = failed;
        for running in failed {
            self.end(running, error.clone());
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
        let error = TaskError::Panicked {
            message: message.into(),
        };
        for running in self.running.drain(..) {
            let error = error.clone();
            // The task that panicked may do so again.
            let _panic = catch_unwind(AssertUnwindSafe(|| running.task.fail(error)));
        }
    }

    fn publish(&self) {
        let running = self.running.iter().map(|own| own.sequence.tokens().len());
        let mut stats = self.shared.stats.lock();
        stats.row = self.row();
        stats.running = self.running.len();
        stats.sequences = self.running.len() + self.slots.len();
        stats.cached_tokens = running.sum::<usize>() + self.slots.tokens();
        if let Some(memory) = self.model.memory() {
            stats.pages = memory.used_pages;
            stats.kv_tokens = memory.used_tokens();
            stats.budget_tokens = self.budget.tokens;
        }
    }
}

impl<M: LanguageModel> Drop for Worker<M> {
    fn drop(&mut self) {
        self.shared.healthy.store(false, Ordering::Release);
    }
}

/// The tasks that have a share of the next forward.
fn planned<C: KvCache>(
    running: &mut [RunningTask<C>],
) -> impl Iterator<Item = &mut RunningTask<C>> {
    running.iter_mut().filter(|own| own.is_planned())
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
