//! What drafters and verifiers tell of themselves: the same figures, told apart by the role.

use std::time::Duration;

use tonic::{Code, Status};

use super::names;
use super::{Counter, Histogram, Metrics, Samples};
use crate::lease::SessionCounts;

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

/// How much a drafter or verifier holds and does at a moment, and what its engines did since they started.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerFigures {
    /// Its sessions.
    pub sessions: SessionCounts,
    /// Most of them.
    pub max_sessions: usize,
    /// Tasks in the batch.
    pub running: usize,
    /// Most of them.
    pub max_running: usize,
    /// Tasks waiting for the batch.
    pub queued: usize,
    /// Most of them.
    pub max_queued: usize,
    /// Sequences with keys and values in memory.
    pub sequences: usize,
    /// Tokens whose keys and values are in memory.
    pub kv_tokens: usize,
    /// Most of them.
    pub kv_budget_tokens: usize,
    /// Sequences whose memory was taken from them.
    pub evictions: u64,
    /// Tokens forwarded again because of that.
    pub reprefilled_tokens: u64,
    /// Tokens not forwarded because another sequence of the tenant began with them.
    pub shared_tokens: u64,
    /// Forwards.
    pub forwards: u64,
    /// Tokens in them.
    pub forwarded_tokens: u64,
    /// Those of them that stood before the tokens scored: prompts, and what a sequence had to catch up on.
    pub prefill_tokens: u64,
    /// Time in them.
    pub busy: Duration,
}

impl PeerFigures {
    /// Tells them of the service in this `role`.
    pub fn tell(&self, role: &str, samples: &mut Samples) {
        let sessions = [
            ("open", self.sessions.attached),
            ("detached", self.sessions.detached),
        ];
        for (state, count) in sessions {
            samples.add(&names::SESSIONS, &[role, state], count as f64);
        }
        for (metric, value) in [
            (&names::SESSIONS_LIMIT, self.max_sessions as f64),
            (&names::ENGINE_RUNNING, self.running as f64),
            (&names::ENGINE_RUNNING_LIMIT, self.max_running as f64),
            (&names::ENGINE_QUEUE, self.queued as f64),
            (&names::ENGINE_QUEUE_LIMIT, self.max_queued as f64),
            (&names::ENGINE_SEQUENCES, self.sequences as f64),
            (&names::KV_TOKENS, self.kv_tokens as f64),
            (&names::KV_BUDGET_TOKENS, self.kv_budget_tokens as f64),
            (&names::KV_EVICTIONS, self.evictions as f64),
            (&names::REPREFILLED_TOKENS, self.reprefilled_tokens as f64),
            (&names::SHARED_TOKENS, self.shared_tokens as f64),
            (&names::ENGINE_FORWARDS, self.forwards as f64),
            (&names::FORWARDED_TOKENS, self.forwarded_tokens as f64),
            (&names::PREFILL_TOKENS, self.prefill_tokens as f64),
            (&names::ENGINE_BUSY, self.busy.as_secs_f64()),
        ] {
            samples.add(metric, &[role], value);
        }
    }
}
