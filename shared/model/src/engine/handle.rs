//! The side of an engine that services hold.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::Sender,
    },
    time::Instant,
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
        let capacity = self.shared.capacity.get();
        self.shared
            .queued
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |queued| {
                (queued < capacity).then_some(queued + 1)
            })
            .map_err(|_| Rejected::Full { capacity })?;
        let job = Job::Run(Queued {
            slot,
            task: Box::new(task),
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

    /// What the engine is doing.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            running: self.shared.running.load(Ordering::Relaxed),
            queued: self.shared.queued.load(Ordering::Relaxed),
            sequences: self.shared.sequences.load(Ordering::Relaxed),
            cached_tokens: self.shared.cached_tokens.load(Ordering::Relaxed),
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
    pub(super) task: Box<dyn Task>,
    pub(super) since: Instant,
}

/// What the thread and the handles both see.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) capacity: NonZeroUsize,
    pub(super) queued: AtomicUsize,
    pub(super) running: AtomicUsize,
    pub(super) sequences: AtomicUsize,
    pub(super) cached_tokens: AtomicUsize,
    pub(super) healthy: AtomicBool,
}

impl Shared {
    pub(super) fn new(capacity: NonZeroUsize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            queued: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            sequences: AtomicUsize::new(0),
            cached_tokens: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
        })
    }
}
