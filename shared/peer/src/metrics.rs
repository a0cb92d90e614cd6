//! The metrics of a peer that are read when somebody looks; of several engines they are sums.

use std::sync::Arc;
use std::time::Duration;

use model::engine::{EngineHandle, Gauges, MemoryGauges, Totals};
use ops::metrics::names;

use crate::role::{PeerServer, Role};
use crate::service::Bounds;

impl<R: Role> PeerServer<R> {
    /// Returns how many sessions have an open stream, and how many wait for their next one.
    pub fn sessions(&self) -> SessionCounts {
        self.sessions.counts()
    }

    /// Tasks and sequences of all engines.
    pub fn engine(&self) -> Gauges {
        let engines = self.engines.iter().map(EngineHandle::gauges);
        engines.fold(Gauges::default(), |sum, one| Gauges {
            running: sum.running + one.running,
            queued: sum.queued + one.queued,
            sequences: sum.sequences + one.sequences,
            cached_tokens: sum.cached_tokens + one.cached_tokens,
        })
    }

    /// Returns the memory of all engines.
    pub fn memory(&self) -> MemoryGauges {
        let engines = self.engines.iter().map(EngineHandle::memory);
        engines.fold(MemoryGauges::default(), |sum, one| MemoryGauges {
            pages: sum.pages + one.pages,
            tokens: sum.tokens + one.tokens,
            budget_tokens: sum.budget_tokens + one.budget_tokens,
            evictions: sum.evictions + one.evictions,
            reprefilled_tokens: sum.reprefilled_tokens + one.reprefilled_tokens,
            shared_tokens: sum.shared_tokens + one.shared_tokens,
        })
    }

    /// Returns what all engines did so far.
    pub fn totals(&self) -> Totals {
        let engines = self.engines.iter().map(EngineHandle::totals);
        engines.fold(Totals::default(), |sum, one| sum + one)
    }

    /// Tells, at every scrape and for as long as it lives, how the peer is, and how long each of its models
    /// took to load.
    pub(crate) fn register_metrics(
        self: &Arc<Self>,
        bounds: &Bounds,
        load_times: Vec<(String, Duration)>,
    ) {
        let looked_at = Arc::downgrade(self);
        let max_sessions = bounds.max_sessions.get();
        let max_running = bounds.engine.max_batch.get() * self.engines.len();
        let max_queued = bounds.engine.max_queue.get() * self.engines.len();
        self.process.metrics.sample(move |samples| {
            let peer = looked_at.upgrade()?;
            let (sessions, engine) = (peer.sessions(), peer.engine());
            for (state, count) in [("open", sessions.attached), ("detached", sessions.detached)] {
                samples.add(&names::SESSIONS, &[R::NAME, state], count as f64);
            }
            for (metric, value) in [
                (&names::SESSIONS_LIMIT, max_sessions as f64),
                (&names::ENGINE_RUNNING, engine.running as f64),
                (&names::ENGINE_RUNNING_LIMIT, max_running as f64),
                (&names::ENGINE_QUEUE, engine.queued as f64),
                (&names::ENGINE_QUEUE_LIMIT, max_queued as f64),
                (&names::ENGINE_SEQUENCES, engine.sequences as f64),
                (&names::KV_TOKENS, engine.kv_tokens as f64),
                (&names::KV_BUDGET_TOKENS, engine.budget_tokens as f64),
                (&names::KV_EVICTIONS, engine.evictions as f64),
                (&names::REPREFILLED_TOKENS, engine.reprefilled_tokens as f64),
                (&names::SHARED_TOKENS, engine.shared_tokens as f64),
                (&names::ENGINE_FORWARDS, engine.forwards as f64),
                (&names::FORWARDED_TOKENS, engine.forwarded_tokens as f64),
                (&names::PREFILL_TOKENS, engine.prefill_tokens as f64),
                (&names::ENGINE_BUSY, engine.busy.as_secs_f64()),
                (&names::ENGINE_ROW, engine.row.as_secs_f64()),
            ] {
                samples.add(metric, &[R::NAME], value);
            }
            for (model, time) in &load_times {
                samples.add(&names::MODEL_LOAD, &[R::NAME, model], time.as_secs_f64());
            }
            Some(())
        });
    }
}
