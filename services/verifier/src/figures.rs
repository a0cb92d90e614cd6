//! What a verifier tells of itself when somebody looks.

use std::sync::Arc;
use std::time::Duration;

use server::metrics::{Metrics, PeerFigures, names};

use crate::config::VerifierConfig;
use crate::shared::Shared;

/// What its figures are told apart by.
pub(crate) const ROLE: &str = "verifier";

/// Tells, at every scrape and for as long as it lives, how the verifier is.
pub(crate) fn tell(
    metrics: &Metrics,
    shared: &Arc<Shared>,
    config: &VerifierConfig,
    load_time: Duration,
) {
    let looked_at = Arc::downgrade(shared);
    let (max_running, max_queued) = (config.max_batch.get(), config.max_queue.get());
    let max_sessions = config.max_sessions.get();
    metrics.sample(move |samples| {
        let shared = looked_at.upgrade()?;
        let (engine, memory) = (shared.engine.gauges(), shared.engine.memory());
        let totals = shared.engine.totals();
        let figures = PeerFigures {
            sessions: shared.sessions.counts(),
            max_sessions,
            running: engine.running,
            max_running,
            queued: engine.queued,
            max_queued,
            sequences: engine.sequences,
            kv_tokens: memory.tokens,
            kv_budget_tokens: memory.budget_tokens,
            evictions: memory.evictions,
            reprefilled_tokens: memory.reprefilled_tokens,
            shared_tokens: memory.shared_tokens,
            forwards: totals.forwards,
            forwarded_tokens: totals.tokens,
            prefill_tokens: totals.prefill_tokens,
            busy: totals.busy,
        };
        figures.tell(ROLE, samples);
        let labels = [ROLE, shared.description.model.as_str()];
        samples.add(&names::MODEL_LOAD, &labels, load_time.as_secs_f64());
        Some(())
    });
}
