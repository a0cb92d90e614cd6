//! The metrics of a peer that are read when somebody looks; of several engines they are sums.

use std::sync::Arc;
use std::time::Duration;

use model::engine::{EngineHandle, EngineStats};
use ops::metrics::names;
use serde_json::{Value, json};

use crate::lease::SessionCounts;
use crate::role::{PeerServer, Role};
use crate::service::Bounds;

impl<R: Role> PeerServer<R> {
    /// Sessions with an open stream, and sessions waiting for their next one.
    pub fn sessions(&self) -> SessionCounts {
        self.sessions.counts()
    }

    /// What all engines are doing and did so far.
    pub fn engine(&self) -> EngineStats {
        let engines = self.engines.iter().map(EngineHandle::stats);
        engines.fold(EngineStats::default(), |sum, one| sum + one)
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
        let looked_at = Arc::downgrade(self);
        (self.process.status).add(move || Some(looked_at.upgrade()?.status(max_sessions)));
    }

    /// Returns what operators are told of it.
    fn status(&self, max_sessions: usize) -> Value {
        let (sessions, engine) = (self.sessions(), self.engine());
        json!({
            "part": R::NAME,
            "sessions_open": sessions.attached,
            "sessions_detached": sessions.detached,
            "sessions_limit": max_sessions,
            "tasks_running": engine.running,
            "tasks_queued": engine.queued,
            "kv_tokens": engine.kv_tokens,
            "kv_budget_tokens": engine.budget_tokens,
            "forwards": engine.forwards,
            "forwarded_tokens": engine.forwarded_tokens,
            "reused_tokens": engine.shared_tokens,
            "evictions": engine.evictions,
            "busy_seconds": engine.busy.as_secs_f64(),
        })
    }
}
