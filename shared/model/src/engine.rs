//! The engine: one thread that alone calls [`LanguageModel::forward`], for all sequences at once.
//!
//! A service submits a [`Task`] on a slot through an [`EngineHandle`]; the thread forwards the next
//! piece of every running task in one ragged batch, hands each its rows, and admits new tasks
//! between forwards (continuous batching). The thread knows nothing of async runtimes: tasks answer
//! through whatever channels they carry.
//!
//! ```text
//! service ──try_submit(slot, task)──▶ queue ──▶ running tasks ──one forward──▶ task.step(rows)
//!                                                  ▲   │                           │
//!                                                  └───┴──────── Continue ─────────┘
//! ```
//!
//! Slots keep a sequence's keys and values between tasks. Each step reconciles the slot with the
//! task's own token list, so a slot is only ever a cache: it may be evicted at any time, at the
//! price of a prefill. That happens to idle slots, the longest unused first, when the next forward would
//! exceed the budget of [`EngineConfig::kv_tokens`], and then to the youngest of the running tasks: they
//! wait, the oldest goes on.

mod budget;
mod gather;
mod handle;
mod pace;
mod prefixes;
mod running;
mod slots;
mod task;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{num::NonZeroUsize, sync::mpsc, thread::JoinHandle, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

pub use self::handle::{EngineHandle, EngineStats, Rejected};
pub use self::task::{Awaited, SlotId, StepRows, StepTiming, Task, TaskError, TaskProgress};
use self::{budget::KvBudget, handle::EngineState, worker::Worker};

/// Bounds of an engine, as a section of a service's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Most sequences, each with its task, in one forward.
    pub max_batch: NonZeroUsize,
    /// Most tasks submitted and not yet running; more are [`Rejected::Full`].
    pub max_queue: NonZeroUsize,
    /// Most tokens in one forward, of all tasks together. Rows to be scored go first, prompts share the
    /// rest, and no less than a quarter. Only a single block that is larger exceeds it, for it goes at once.
    pub max_batch_tokens: NonZeroUsize,
    /// Most draft tokens in one forward, of all sequences together, where drafts come while the target decodes
    /// (schedule `stream`); 0 scores none. How many of them there are follows from what they are worth and cost.
    pub max_draft_rows: usize,
    /// Most sequences whose keys and values are kept; beyond it the idle slot that was used the
    /// longest time ago is evicted, and prefilled again when it comes back. Running tasks are never evicted.
    /// Fewer than a coordinator's `max_requests` make them evict each other.
    pub max_cached_sequences: NonZeroUsize,
    /// Most tokens of all sequences whose keys and values are in memory, counted in whole pages of the
    /// model. 0 allows as many as a share of the memory holds that is free at the start
    /// ([`LanguageModel::free_pages`]), but no more than `max_cached_sequences` of the model's context. Models that do
    /// not count their memory ([`LanguageModel::memory`]) know no such bound.
    pub kv_tokens: usize,
    /// Whether what sequences of a tenant begin with alike is computed once. What one began with is kept when its slot is freed,
    /// within `kv_tokens`, and the longest unused goes first.
    pub prefix_sharing: bool,
    /// Most tokens of one task forwarded at once ahead of its scored rows, so that a long prompt
    /// does not stall the others. Not a setting.
    #[serde(skip)]
    pub prefill_chunk: NonZeroUsize,
    /// How long a forward should take that reads a prompt, for others wait for it: prompts are cut so that it
    /// does, by what the last ones took, but into no fewer than 16 tokens. None for as long as it likes. Not a
    /// setting.
    #[serde(skip)]
    pub prefill_time: Option<Duration>,
    /// Most tokens of a tree at the end of a sequence: its nodes take room side by side, so a sequence's longest
    /// length leaves room for them. Not a setting of its own.
    #[serde(skip)]
    pub tree_tokens: usize,
    /// How many engines share the free memory that a service may take where `kv_tokens` is 0: each gets the same part.
    /// Not a setting.
    #[serde(skip)]
    pub sharers: NonZeroUsize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let bound = |n| NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN);
        Self {
            max_batch: bound(32),
            max_queue: bound(256),
            max_batch_tokens: bound(512),
            max_draft_rows: 64,
            max_cached_sequences: bound(256),
            kv_tokens: 0,
            prefix_sharing: true,
            prefill_chunk: bound(256),
            prefill_time: Some(Duration::from_millis(50)),
            tree_tokens: 0,
            sharers: NonZeroUsize::MIN,
        }
    }
}

/// Warms the model up and starts the engine thread, named `name`.
///
/// When the last clone of the handle is dropped, the thread finishes the tasks it has and ends;
/// join it then.
///
/// # Errors
/// If the first forward fails, the budget holds not even one token, or the system refuses a thread.
pub fn spawn<M>(
    mut model: M,
    mut config: EngineConfig,
    name: &str,
) -> Result<(EngineHandle, JoinHandle<()>), SpawnError>
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    warm_up(&mut model).map_err(|error| SpawnError::WarmUp(Box::new(error)))?;
    let most = NonZeroUsize::new(model.caps().max_sequences).unwrap_or(NonZeroUsize::MIN);
    config.max_cached_sequences = config.max_cached_sequences.min(most);
    config.max_batch = config.max_batch.min(most);
    let budget = KvBudget::of(&model, &config)?;
    budget.log(name, model.shape().context_len);
    if let Some(pages) = budget.pages {
        (model.reserve(pages)).map_err(|error| SpawnError::Reserve {
            kv_tokens: budget.tokens,
            source: Box::new(error),
        })?;
    }
    let (sender, receiver) = mpsc::channel();
    let shared = EngineState::new(config.max_queue, budget.longest, model.caps());
    let worker = Worker::new(model, config, budget, receiver, shared.clone());
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || worker.run())
        .map_err(SpawnError::Thread)?;
    Ok((EngineHandle { sender, shared }, thread))
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The first forward failed.
    #[error("the model failed its first forward")]
    WarmUp(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The budget for keys and values holds no token.
    #[error(
        "kv_tokens is {kv_tokens}, and one request needs at least {least}: a token and a draft tree of \
         {tree_tokens} (max_draft_tokens), in whole pages; 0 is a share of the free memory"
    )]
    Budget {
        /// The budget.
        kv_tokens: usize,
        /// Most tokens of a tree.
        tree_tokens: usize,
        /// The least.
        least: usize,
    },
    /// The free memory holds keys and values of no token.
    #[error(
        "the free memory has room for keys and values of {tokens} tokens, and one request needs at least {least}: \
         a token and a draft tree of {tree_tokens} (max_draft_tokens), in whole pages; free some memory, raise the \
         container's limit, or serve a smaller model"
    )]
    NoMemory {
        /// Tokens that there is room for.
        tokens: usize,
        /// Most tokens of a tree.
        tree_tokens: usize,
        /// The least.
        least: usize,
    },
    /// The model does not get the memory of its budget.
    #[error("no memory for keys and values of {kv_tokens} tokens (kv_tokens)")]
    Reserve {
        /// The budget.
        kv_tokens: usize,
        /// What the model said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system refused a thread.
    #[error("no thread for the engine")]
    Thread(#[source] std::io::Error),
}

/// Forwards one token and forgets it, so that the first request does not pay for page faults.
fn warm_up<M: LanguageModel>(model: &mut M) -> Result<(), M::Error> {
    let mut cache = model.new_cache();
    if model.shape().source_len > 0 {
        model.encode(&mut cache, &[0])?;
    }
    let mut segment = [Segment {
        cache: &mut cache,
        tokens: &[0],
        parents: &[],
        scored_from: 0,
    }];
    model.forward(&mut segment, &mut Rows::default())?;
    cache.truncate(0);
    Ok(())
}

/// Numbers slots; unique in the process, so that no two engines' slots are ever confused.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A slot of its own in an engine. Dropping it frees its keys and values.
#[derive(Debug)]
pub struct EngineSlot {
    engine: EngineHandle,
    id: SlotId,
    tenant: Option<Arc<str>>,
}

impl EngineHandle {
    /// A slot that no one else uses, of `tenant`. It takes memory from its first task on. Where
    /// [`EngineConfig::prefix_sharing`](EngineConfig::prefix_sharing) allows it, its sequence may
    /// begin with the memory of earlier ones of the same tenant; where that is empty it never does.
    pub fn new_slot_of(&self, tenant: &str) -> EngineSlot {
        EngineSlot {
            engine: self.clone(),
            id: SlotId(NEXT.fetch_add(1, Ordering::Relaxed)),
            tenant: (!tenant.is_empty()).then(|| tenant.into()),
        }
    }
}

impl EngineSlot {
    /// Queues `task` on this slot's sequence.
    ///
    /// # Errors
    /// [`Rejected`], at once: this never blocks.
    pub fn try_submit(&self, task: impl Task) -> Result<(), Rejected> {
        let tenant = self.tenant.clone();
        self.engine.submit(self.id, tenant, Box::new(task))
    }
}

impl Drop for EngineSlot {
    fn drop(&mut self) {
        self.engine.free(self.id);
    }
}

#[cfg(test)]
mod tests;
