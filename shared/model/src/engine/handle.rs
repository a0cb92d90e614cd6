//! The side of an engine that services hold.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use speculation::ports::Caps;
use thiserror::Error;

use super::task::{SlotId, Task};

/// Submits tasks to an engine thread. Clones share the thread; it ends when the last is dropped.
#[derive(Clone, Debug)]
pub struct EngineHandle {
    pub(super) sender: Sender<EngineJob>,
    pub(super) shared: Arc<EngineState>,
}

/// What an engine is doing and did since it started, sampled between two forwards. All of its memory is zero if the model
/// does not count it, but for evictions and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Tasks in the batch.
    pub running: usize,
    /// Tasks submitted and not yet running.
    pub queued: usize,
    /// Sequences with keys and values in memory.
    pub sequences: usize,
    /// Tokens those sequences hold.
    pub cached_tokens: usize,
    /// Pages of keys and values in use, those of kept prefixes included.
    pub pages: usize,
    /// The same in tokens.
    pub kv_tokens: usize,
    /// Most of these tokens.
    pub budget_tokens: usize,
    /// Sequences that were made to give their memory back.
    pub evictions: u64,
    /// Tokens forwarded again because their keys and values were gone.
    pub reprefilled_tokens: u64,
    /// Tokens not forwarded because an earlier sequence of the tenant began with them.
    pub shared_tokens: u64,
    /// Forwards of the model.
    pub forwards: u64,
    /// Tokens in them, those of encoded sources included.
    pub forwarded_tokens: u64,
    /// Those of them that stood before the tokens scored: prompts, and what a sequence had to catch up on.
    pub prefill_tokens: u64,
    /// Time in forwards.
    pub busy: Duration,
    /// The time that one more row adds to a forward, as measured lately. Zero until it was measured.
    pub row: Duration,
}

impl std::ops::Add for EngineStats {
    type Output = Self;

    /// Both engines together; a row takes the longer of both times.
    fn add(self, other: Self) -> Self {
        Self {
            running: self.running + other.running,
            queued: self.queued + other.queued,
            sequences: self.sequences + other.sequences,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            pages: self.pages + other.pages,
            kv_tokens: self.kv_tokens + other.kv_tokens,
            budget_tokens: self.budget_tokens + other.budget_tokens,
            evictions: self.evictions + other.evictions,
            reprefilled_tokens: self.reprefilled_tokens + other.reprefilled_tokens,
            shared_tokens: self.shared_tokens + other.shared_tokens,
            forwards: self.forwards + other.forwards,
            forwarded_tokens: self.forwarded_tokens + other.forwarded_tokens,
            prefill_tokens: self.prefill_tokens + other.prefill_tokens,
            busy: self.busy + other.busy,
            row: self.row.max(other.row),
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
        let job = EngineJob::Run(Queued {
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
        let _stopped = self.sender.send(EngineJob::Free(slot));
    }

    /// Ends a wait for drafts, if the engine waits for any: some have come.
    pub fn wake(&self) {
        if self.shared.awaits_drafts.swap(false, Ordering::AcqRel) {
            let _stopped = self.sender.send(EngineJob::Wake);
        }
    }

    /// Whether the thread runs and nothing on it has panicked.
    pub fn is_healthy(&self) -> bool {
        self.shared.healthy.load(Ordering::Acquire)
    }

    /// Longest sequence whose keys and values fit into the budget, in tokens; at most the model's context.
    pub fn longest_sequence(&self) -> usize {
        self.shared.longest
    }

    /// Returns what the model can do.
    pub fn caps(&self) -> Caps {
        self.shared.caps
    }

    /// Returns what the engine is doing and did so far.
    pub fn stats(&self) -> EngineStats {
        EngineStats {
            queued: self.shared.queued.load(Ordering::Relaxed),
            ..*self.shared.stats.lock()
        }
    }
}

/// What travels to the engine thread. The channel itself has no bound: tasks are counted by
/// `EngineState::queued`, a slot is freed about once, and there is one wake for each wait.
pub(super) enum EngineJob {
    Run(Queued),
    Free(SlotId),
    /// Drafts have come that were waited for.
    Wake,
}

/// A task on its way to the batch.
pub(super) struct Queued {
    pub(super) slot: SlotId,
    /// Whose prefixes it may share; none shares nothing.
    pub(super) tenant: Option<Arc<str>>,
    pub(super) task: Box<dyn Task>,
    pub(super) since: Instant,
}

/// What the thread and the handles both see.
#[derive(Debug)]
pub(super) struct EngineState {
    pub(super) capacity: NonZeroUsize,
    pub(super) queued: AtomicUsize,
    /// But for what is queued. The engine's thread alone writes them, between two forwards; numbers are in order whoever
    /// panicked.
    pub(super) stats: Mutex<EngineStats>,
    pub(super) longest: usize,
    pub(super) caps: Caps,
    pub(super) healthy: AtomicBool,
    /// Whether the thread waits for drafts, or is about to.
    pub(super) awaits_drafts: AtomicBool,
}

impl EngineState {
    pub(super) fn new(capacity: NonZeroUsize, longest: usize, caps: Caps) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            queued: AtomicUsize::new(0),
            stats: Mutex::default(),
            longest,
            caps,
            healthy: AtomicBool::new(true),
            awaits_drafts: AtomicBool::new(false),
        })
    }
}
