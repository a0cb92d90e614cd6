//! One round under way, and what it costs.

use std::time::{Duration, Instant};

use model::engine::StepTiming;
use ops::metrics::PeerMetrics;
use ops::trace::{self, Span, TimeBreakdown};
use tonic::Status;
use wire::round::Round;
use wire::v1;

use crate::error::RoundError;
use crate::progress::{ProgressWait, RoundProgress, Stalled};
use crate::role::{Replies, Role, Said, Session};

/// A round under way, and where its replies go.
#[derive(Debug)]
pub struct Turn<'a, R: Role> {
    /// Where the round stands.
    pub round: Round,
    /// When it came.
    pub began: Instant,
    /// Where its replies go.
    pub replies: &'a Replies<R::Reply>,
}

impl<R: Role> Turn<'_, R> {
    /// Brings the session's output to where the round stands; false if the coordinator was told that
    /// too little is held.
    ///
    /// # Errors
    /// If the client is gone, or does not read.
    pub async fn advance(&self, session: &mut Session<R>) -> Result<bool, Status> {
        let round = &self.round;
        let Err(need) = session
            .committed
            .replace_from(round.from_len, &round.committed)
        else {
            return Ok(true);
        };
        let need = v1::NeedFrom {
            header: Some(round.reply_header(false)),
            from: need.from,
        };
        self.replies.send(R::write(Said::NeedFrom(need))).await?;
        Ok(false)
    }

    /// Awaits `work` for as long as it makes progress, which the coordinator is told as far as it reads.
    ///
    /// # Errors
    /// If it makes none for the round's time.
    pub async fn wait<T>(
        &self,
        progressing: &mut ProgressWait,
        work: impl Future<Output = T>,
    ) -> Result<T, RoundError> {
        let offer = |RoundProgress { done, total }| {
            let progress = Said::Progress(self.round.progress(done, total));
            self.replies.offer(R::write(progress));
        };
        let waited = progressing.wait(self.round.timeout, work, offer).await;
        waited.map_err(|Stalled(limit)| RoundError::Late(limit))
    }
}

/// Awaits a part of a round whose span is `span`, and notes there if it fails.
///
/// # Errors
/// As the part.
pub async fn traced<R: Role, T>(
    span: &mut Span,
    part: impl Future<Output = Result<T, RoundError>>,
) -> Result<T, Status> {
    let ended = trace::within(span.context(), part).await;
    ended.map_err(|error| {
        let status = error.status::<R>();
        span.fail(format!("{:?}", status.code()));
        status
    })
}

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
    pub fn share(&self, prefills: bool) -> TimeBreakdown {
        TimeBreakdown {
            queue: self.step.queue,
            forward: self.step.forward,
            accept: self.accept,
            batch: self.step.batch_sequences as u32,
            forwarded_tokens: self.step.forwarded_tokens as u32,
            prefills,
        }
    }
}
