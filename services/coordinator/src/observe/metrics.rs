//! What a coordinator counts: of each request as it goes on, and of itself when somebody looks.

mod request;
mod series;

use ops::metrics::{Metrics, names};
use tonic::Code;
use wire::failure::Failure;

use crate::events::RequestStage;

pub(super) use request::{RequestMetrics, outcome};
pub(super) use series::ModelMetrics;

/// Why requests never begin.
const REFUSALS: [&str; 5] = ["overloaded", "invalid", "unavailable", "deadline", "error"];

fn refusal(code: Code) -> &'static str {
    match Failure::of(code) {
        Some(Failure::Overloaded) => "overloaded",
        Some(Failure::BadField | Failure::ContextFull) => "invalid",
        Some(Failure::Unavailable) => "unavailable",
        Some(Failure::Late) => "deadline",
        Some(
            Failure::Superseded
            | Failure::Cancelled
            | Failure::NotOffered
            | Failure::Denied
            | Failure::Internal,
        )
        | None => "error",
    }
}

/// How the coordinator is at the moment.
#[derive(Clone, Debug)]
pub(crate) struct CoordinatorGauges {
    /// Requests under way, and most of them.
    pub(crate) running: usize,
    pub(crate) max_requests: usize,
    pub(crate) peers: Vec<PeerGauges>,
}

/// Addresses of the peers of one role.
#[derive(Clone, Debug)]
pub(crate) struct PeerGauges {
    pub(crate) model: String,
    pub(crate) role: &'static str,
    /// How many are in which state.
    pub(crate) states: [(&'static str, usize); 3],
}

/// Counts from nothing what may never happen, so that its first time is seen as a change; and tells at every
/// scrape, for as long as `gauges` answers, how the coordinator is.
pub(super) fn register(
    metrics: &Metrics,
    gauges: impl Fn() -> Option<CoordinatorGauges> + Send + Sync + 'static,
) {
    metrics.counter(&names::ADMISSION_REJECTS, &[]);
    for reason in REFUSALS {
        metrics.counter(&names::REQUESTS_REFUSED, &[reason]);
    }
    for (_, stage) in RequestStage::ALL {
        metrics.counter(&names::CANCELLATIONS, &[stage]);
    }
    metrics.sample(move |samples| {
        let gauges = gauges()?;
        samples.add(&names::REQUESTS_RUNNING, &[], gauges.running as f64);
        samples.add(&names::REQUESTS_LIMIT, &[], gauges.max_requests as f64);
        for PeerGauges {
            model,
            role,
            states,
        } in gauges.peers
        {
            for (state, count) in states {
                samples.add(&names::PEERS, &[&model, role, state], count as f64);
            }
        }
        Some(())
    });
}
