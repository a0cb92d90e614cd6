//! What a round cost on the engine thread.

use std::time::{Duration, Instant};

use model::engine::StepFigures;
use server::metrics::PeerMetrics;
use server::trace::{Share, Span};
use wire::v1;

/// What a step of a task cost: its forwards, and what was made of their rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) step: StepFigures,
    pub(crate) accept: Duration,
}

impl Cost {
    /// Adds another step of the same task.
    pub(crate) fn add(&mut self, more: &Self) {
        self.step.queue += more.step.queue;
        self.step.forward += more.step.forward;
        self.step.forwarded_tokens += more.step.forwarded_tokens;
        self.step.batch_tokens = more.step.batch_tokens;
        self.step.batch_sequences = self.step.batch_sequences.max(more.step.batch_sequences);
        self.accept += more.accept;
    }

    /// The same in a reply to a request that came in at `began`.
    pub(crate) fn timing(&self, began: Instant) -> v1::Timing {
        v1::Timing {
            queue_us: self.step.queue.as_micros() as u32,
            forward_us: self.step.forward.as_micros() as u32,
            total_us: began.elapsed().as_micros() as u32,
            batch: self.step.batch_sequences as u32,
            accept_us: self.accept.as_micros() as u32,
            forwarded_tokens: self.step.forwarded_tokens as u32,
        }
    }

    /// Counts it, as the first or only step of a task.
    pub(crate) fn count(&self, metrics: &PeerMetrics) {
        let step = &self.step;
        metrics.computed(step.queue, step.forward, step.batch_sequences);
    }

    /// Counts it, as a later step.
    pub(crate) fn count_forward(&self, metrics: &PeerMetrics) {
        metrics.forwarded(self.step.forward, self.step.batch_sequences);
    }

    /// Adds its parts to the span of a round that scored `scored` positions and began at `began`.
    pub(crate) fn trace(&self, span: &mut Span, scored: usize, began: Instant) {
        let share = Share {
            queue: self.step.queue,
            forward: self.step.forward,
            accept: self.accept,
            batch: self.step.batch_sequences as u32,
            forwarded_tokens: self.step.forwarded_tokens as u32,
            prefills: self.step.forwarded_tokens > scored,
        };
        span.add_share(&share, began, None);
    }
}

/// What `work` gives, and how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed())
}
