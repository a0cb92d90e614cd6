//! What drafters and verifiers count: the same figures, told apart by the role.

use std::time::Duration;

use tonic::{Code, Status};

use super::names;
use super::{Counter, Histogram, Metrics};

/// How rounds end.
const OUTCOMES: [&str; 5] = ["answered", "overloaded", "late", "refused", "failed"];

/// What a drafter or verifier counts. Made once a service, so that counting takes no lookup.
#[derive(Clone, Debug)]
pub struct PeerMetrics {
    queue: Histogram,
    forward: Histogram,
    batch: Histogram,
    /// Rounds, in the order of [`OUTCOMES`].
    rounds: [Counter; OUTCOMES.len()],
}

impl PeerMetrics {
    /// The figures of the service in this `role`: `drafter` or `verifier`.
    pub fn new(metrics: &Metrics, role: &'static str) -> Self {
        Self {
            queue: metrics.histogram(&names::QUEUE_DURATION, &[role]),
            forward: metrics.histogram(&names::FORWARD_DURATION, &[role]),
            batch: metrics.histogram(&names::ENGINE_BATCH, &[role]),
            rounds: OUTCOMES.map(|outcome| metrics.counter(&names::PEER_ROUNDS, &[role, outcome])),
        }
    }

    /// A task of the engine gave what was asked of it: it waited for `queue`, its forwards took `forward`, and
    /// there were `sequences` in the largest.
    pub fn computed(&self, queue: Duration, forward: Duration, sequences: usize) {
        self.queue.observe_duration(queue);
        self.forwarded(forward, sequences);
    }

    /// The same of a task's later steps, which wait for nothing.
    pub fn forwarded(&self, forward: Duration, sequences: usize) {
        self.forward.observe_duration(forward);
        self.batch.observe(sequences as f64);
    }

    /// A round ended.
    pub fn round(&self, answered: &Result<(), Status>) {
        let outcome = match answered.as_ref().map_err(Status::code) {
            Ok(()) => 0,
            Err(Code::ResourceExhausted) => 1,
            Err(Code::DeadlineExceeded) => 2,
            Err(
                Code::InvalidArgument
                | Code::OutOfRange
                | Code::FailedPrecondition
                | Code::Unimplemented,
            ) => 3,
            Err(_) => 4,
        };
        self.rounds[outcome].inc();
    }
}
