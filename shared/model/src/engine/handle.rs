//! The side of an engine that services hold.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};

use thiserror::Error;

use super::task::{SlotId, Task};

/// Submits tasks to an engine thread. Clones share the thread; it ends when the last is dropped.
#[derive(Clone, Debug)]
pub struct EngineHandle {
    sender: Sender<Job>,
    shared: Arc<Shared>,
}

/// What an engine is doing, sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Tasks in the batch.
    pub running: usize,
    /// Tasks submitted and not yet running.
    pub queued: usize,
    /// Sequences with keys and values in memory.
    pub sequences: usize,
    /// Tokens those sequences hold.
    pub cached_tokens: usize,
}

/// What an engine does with its memory, sampled. All zero if the model does not count its memory, but for
/// evictions and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryGauges {
    /// Pages of keys and values in use, those of kept prefixes included.
    pub pages: usize,
    /// The same in tokens.
    pub tokens: usize,
    /// Most of these tokens.
    pub budget_tokens: usize,
    /// Sequences that were made to give their memory back, since the engine started.
    pub evictions: u64,
    /// Tokens forwarded again because their keys and values were gone.
    pub reprefilled_tokens: u64,
    /// Tokens not forwarded because an earlier sequence of the tenant began with them.
    pub shared_tokens: u64,
}

/// What an engine did since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Forwards of the model.
    pub forwards: u64,
    /// Tokens in them, those of encoded sources included.
    pub tokens: u64,
    /// Those of them that stood before the tokens scored: prompts, and what a sequence had to catch up on.
    pub prefill_tokens: u64,
    /// Time in them.
    pub busy: Duration,
}

impl std::ops::Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            forwards: self.forwards + other.forwards,
            tokens: self.tokens + other.tokens,
            prefill_tokens: self.prefill_tokens + other.prefill_tokens,
            busy: self.busy + other.busy,
        }
    }
}

/// Why a task was not accepted; the task is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejected {
    /// As many tasks wait as may: try again later.
    #[error("the engine's queue of {capacity} is full")]
    Full {
        /// The bound that was met.
        capacity: usize,
    },
    /// The engine thread has ended.
    #[error("the engine has stopped")]
    Stopped,
}

impl EngineHandle {
    pub(super) fn new(sender: Sender<Job>, shared: Arc<Shared>) -> Self {
        Self { sender, shared }
    }

    /// Queues `task` on the sequence of `slot`, which need not exist yet. Tasks of one slot run one
    /// after another, in the order of submission.
    ///
    /// # Errors
    /// [`Rejected`], at once: this never blocks.
    pub fn try_submit(&self, slot: SlotId, task: impl Task) -> Result<(), Rejected> {
        self.submit(slot, None, Box::new(task))
    }

    /// The same on a slot of `tenant`.
    pub(super) fn submit(
        &self,
        slot: SlotId,
        tenant: Option<Arc<str>>,
        task: Box<dyn Task>,
    ) -> Result<(), Rejected> {
        let capacity = self.shared.capacity.get();
        self.shared
            .queued
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |queued| {
                (queued < capacity).then_some(queued + 1)
            })
            .map_err(|_| Rejected::Full { capacity })?;
        let job = Job::Run(Queued {
            slot,
            tenant,
            task,
            since: Instant::now(),
        });
        self.sender.send(job).map_err(|_| {
            self.shared.queued.fetch_sub(1, Ordering::AcqRel);
            Rejected::Stopped
        })
    }

    /// Drops the keys and values of `slot`, after the tasks already submitted on it. Never fails:
    /// a stopped engine holds none.
    pub fn free(&self, slot: SlotId) {
        let _stopped = self.sender.send(Job::Free(slot));
    }

    /// Whether the thread runs and nothing on it has panicked.
    pub fn is_healthy(&self) -> bool {
        self.shared.healthy.load(Ordering::Acquire)
    }

    /// Longest sequence whose keys and values fit into the budget, in tokens; at most the model's context.
    pub fn longest_sequence(&self) -> usize {
        self.shared.longest
    }

    /// Returns what the engine does with its memory.
    pub fn memory(&self) -> MemoryGauges {
        self.shared.figures().memory
    }

    /// Returns what the engine did so far.
    pub fn totals(&self) -> Totals {
        self.shared.figures().totals
    }

    /// The time that one more row adds to a forward, as measured lately. Zero until it was measured.
    pub fn row(&self) -> Duration {
        self.shared.figures().row
    }

    /// Returns what the engine is doing.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            queued: self.shared.queued.load(Ordering::Relaxed),
            ..self.shared.figures().gauges
        }
    }
}

/// What travels to the engine thread. The channel itself has no bound: tasks are counted by
/// `Shared::queued`, and a slot is freed about once.
pub(super) enum Job {
    Run(Queued),
    Free(SlotId),
}

/// A task on its way to the batch.
pub(super) struct Queued {
    pub(super) slot: SlotId,
    /// Whose prefixes it may share; none shares nothing.
    pub(super) tenant: Option<Arc<str>>,
    pub(super) task: Box<dyn Task>,
    pub(super) since: Instant,
}

/// Measurements of the engine's thread, which alone writes them, between two forwards.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// But for what is queued.
    pub(super) gauges: Gauges,
    pub(super) memory: MemoryGauges,
    pub(super) totals: Totals,
    pub(super) row: Duration,
}

/// What the thread and the handles both see.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) capacity: NonZeroUsize,
    pub(super) queued: AtomicUsize,
    figures: Mutex<Figures>,
    pub(super) longest: usize,
    pub(super) healthy: AtomicBool,
}

impl Shared {
    pub(super) fn new(capacity: NonZeroUsize, longest: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            queued: AtomicUsize::new(0),
            figures: Mutex::default(),
            longest,
            healthy: AtomicBool::new(true),
        })
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        // Numbers are in order whoever panicked.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
