//! What a drafter tells of itself when somebody looks.

use std::sync::Arc;
use std::time::Duration;

use server::metrics::{Metrics, PeerFigures, names};

use crate::config::DrafterConfig;
use crate::loaded::Loaded;
use crate::shared::Shared;

/// What its figures are told apart by.
pub(crate) const ROLE: &str = "drafter";

/// The draft models, and how long each took to load.
pub(crate) fn load_times(loaded: &Loaded) -> Vec<(String, Duration)> {
    let models = loaded.models.iter();
    models
        .map(|served| (served.name.clone(), served.load_time))
        .collect()
}

/// Tells, at every scrape and for as long as it lives, how the drafter is; of several models' engines the sum.
pub(crate) fn tell(
    metrics: &Metrics,
    shared: &Arc<Shared>,
    config: &DrafterConfig,
    load_times: Vec<(String, Duration)>,
) {
    let looked_at = Arc::downgrade(shared);
    let engines = shared.proposers.models();
    let max_running = config.max_batch.get() * engines;
    let max_queued = config.max_queue.get() * engines;
    let max_sessions = config.max_sessions.get();
    metrics.sample(move |samples| {
        let shared = looked_at.upgrade()?;
        let (engine, memory) = (shared.proposers.gauges(), shared.proposers.memory());
        let totals = shared.proposers.totals();
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
        for (model, time) in &load_times {
            samples.add(
                &names::MODEL_LOAD,
                &[ROLE, model.as_str()],
                time.as_secs_f64(),
            );
        }
        Some(())
    });
}
