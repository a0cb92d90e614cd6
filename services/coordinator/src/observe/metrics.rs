//! What a coordinator counts of each request as it goes on.

mod request;
mod series;

use ops::metrics::{Metrics, names};
use strum::VariantNames;
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

/// Counts from nothing what may never happen, so that its first time is seen as a change.
pub(super) fn register(metrics: &Metrics) {
    metrics.counter(&names::ADMISSION_REJECTS, &[]);
    for reason in REFUSALS {
        metrics.counter(&names::REQUESTS_REFUSED, &[reason]);
    }
    for stage in RequestStage::VARIANTS {
        metrics.counter(&names::CANCELLATIONS, &[stage]);
    }
}
