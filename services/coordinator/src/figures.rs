//! What a coordinator counts: of each request as it goes on, and of itself when somebody looks.

mod model;
mod request;

use std::sync::Arc;

use server::metrics::{Metrics, names};
use tonic::Code;

use crate::grpc::Shared;
use crate::observe::Stage;
use crate::peers::Kind;

pub(crate) use model::ModelFigures;
pub(crate) use request::RequestFigures;

/// Why requests never begin.
const REFUSALS: [&str; 5] = ["overloaded", "invalid", "unavailable", "deadline", "error"];

fn refusal(code: Code) -> &'static str {
    match code {
        Code::ResourceExhausted => "overloaded",
        Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition | Code::NotFound => {
            "invalid"
        }
        Code::Unavailable => "unavailable",
        Code::DeadlineExceeded => "deadline",
        _ => "error",
    }
}

/// Counts from nothing what may never happen, so that its first time is seen as a change; and tells, at every
/// scrape and for as long as it lives, how the coordinator is.
pub(crate) fn tell(metrics: &Metrics, shared: &Arc<Shared>) {
    metrics.counter(&names::ADMISSION_REJECTS, &[]);
    for reason in REFUSALS {
        metrics.counter(&names::REQUESTS_REFUSED, &[reason]);
    }
    for stage in Stage::ALL {
        metrics.counter(&names::CANCELLATIONS, &[stage.name()]);
    }
    let looked_at = Arc::downgrade(shared);
    metrics.sample(move |samples| {
        let shared = looked_at.upgrade()?;
        let admission = &shared.admission;
        samples.add(&names::REQUESTS_RUNNING, &[], admission.running() as f64);
        samples.add(&names::REQUESTS_LIMIT, &[], admission.max_requests() as f64);
        for group in shared.groups.iter() {
            for (kind, role) in [(Kind::Drafter, "drafter"), (Kind::Verifier, "verifier")] {
                let (alive, resting) = group.counts(kind);
                for (state, count) in [("alive", alive), ("resting", resting)] {
                    samples.add(&names::PEERS, &[group.name(), role, state], count as f64);
                }
            }
        }
        Some(())
    });
}
