//! What a round cost on an engine's thread.

use std::time::{Duration, Instant};

use model::engine::StepTiming;
use server::metrics::PeerMetrics;
use server::trace::Share;
use wire::v1;

/// What steps of a task cost: their forwards, and what was made of their rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The forwards.
    pub step: StepTiming,
    /// Deciding.
    pub accept: Duration,
}

impl Cost {
    /// The cost of forwards alone.
    pub fn of(step: StepTiming) -> Self {
        let accept = Duration::ZERO;
        Self { step, accept }
    }

    /// Adds another step of the same round.
    pub fn add(&mut self, more: &Self) {
        self.step.queue += more.step.queue;
        self.step.forward += more.step.forward;
        self.step.forwarded_tokens += more.step.forwarded_tokens;
        self.step.batch_tokens = more.step.batch_tokens;
        self.step.batch_sequences = self.step.batch_sequences.max(more.step.batch_sequences);
        self.step.row = more.step.row;
        self.accept += more.accept;
    }

    /// The timing that a reply carries. `began` is when its request came in, `sessions` the number that the peer
    /// serves.
    pub fn timing(&self, began: Instant, sessions: usize) -> v1::Timing {
        v1::Timing {
            queue_us: self.step.queue.as_micros() as u32,
            forward_us: self.step.forward.as_micros() as u32,
            total_us: began.elapsed().as_micros() as u32,
            batch: self.step.batch_sequences as u32,
            accept_us: self.accept.as_micros() as u32,
            forwarded_tokens: self.step.forwarded_tokens as u32,
            row_ns: u32::try_from(self.step.row.as_nanos()).unwrap_or(u32::MAX),
            sessions: sessions as u32,
        }
    }

    /// Counts it, as the first or only step of a task.
    pub fn count(&self, metrics: &PeerMetrics) {
        let step = &self.step;
        metrics.computed(step.queue, step.forward, step.batch_sequences);
    }

    /// Its parts in a trace; `prefills` tells whether the forwards also brought the session up to date.
    pub fn share(&self, prefills: bool) -> Share {
        Share {
            queue: self.step.queue,
            forward: self.step.forward,
            accept: self.accept,
            batch: self.step.batch_sequences as u32,
            forwarded_tokens: self.step.forwarded_tokens as u32,
            prefills,
        }
    }
}
