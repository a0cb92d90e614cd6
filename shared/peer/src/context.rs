//! One round under way, and what it costs.

use std::time::{Duration, Instant};

use model::engine::StepTiming;
use ops::metrics::PeerMetrics;
use ops::trace::TimeBreakdown;
use tokio::sync::mpsc;
use tonic::Status;
use v1::round_answer::Part;
use v1::session_reply::Reply;
use wire::failure::Failure;
use wire::round::RoundSpec;
use wire::v1;

use crate::commits::Commits;
use crate::error::RoundError;
use crate::granted::Granted;
use crate::progress::{ProgressWait, RoundProgress, Stalled};
use crate::proposals::Proposals;

/// A round under way, and where its replies go.
#[derive(Debug)]
pub struct RoundContext<'a> {
    /// Where the round stands.
    pub round: RoundSpec,
    /// When it came.
    pub began: Instant,
    /// How far it may go, if it is answered in parts.
    pub granted: Granted,
    /// What is proposed to it meanwhile, if it decodes.
    pub proposals: Proposals,
    /// What the target chooses meanwhile, if it drafts ahead.
    pub commits: Commits,
    pub(crate) replies: &'a ReplySender,
}

impl RoundContext<'_> {
    /// Sends the round's answer, or a part of it.
    ///
    /// # Errors
    /// If the client is gone, or does not read.
    pub async fn answer(&self, part: Part) -> Result<(), Status> {
        let header = self.round.reply_header(false);
        self.replies.answer(header, part).await
    }

    /// Sends a further part of an answer, of which the first part said in full what it answers.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_further(&self, part: Part) -> Result<(), Status> {
        let header = v1::ReplyHeader {
            round: self.round.key.round,
            ..v1::ReplyHeader::default()
        };
        self.replies.answer(header, part).await
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
            let progress = self.round.progress(done, total);
            self.replies.offer(Reply::Progress(progress));
        };
        let waited = progressing.wait(self.round.timeout, work, offer).await;
        waited.map_err(|Stalled(limit)| RoundError::Late(limit))
    }
}

/// Replies buffered for one slow client before its stream is no longer read.
pub const REPLY_BUFFER: usize = 16;

/// How long a round waits for a client that is there and does not read, with the buffer full. No client
/// of ours does that: it reads until it gives the stream up.
pub const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Where a stream's replies go.
#[derive(Debug)]
pub(crate) struct ReplySender(pub(crate) mpsc::Sender<Result<v1::SessionReply, Status>>);

impl ReplySender {
    /// Sends a reply; waits for a while if the client does not read.
    ///
    /// # Errors
    /// If the client is gone, or reads nothing for a minute.
    pub(crate) async fn send(&self, reply: Reply) -> Result<(), Status> {
        let sending = self.0.send(Ok(reply.into()));
        match tokio::time::timeout(READ_TIMEOUT, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Failure::Cancelled.status("the client is gone")),
            Err(_) => Err(Failure::Late.status("the client read none of its replies for a minute")),
        }
    }

    /// Sends a round's answer, or a part of it; fails as [`Self::send`] does.
    pub(crate) async fn answer(&self, header: v1::ReplyHeader, part: Part) -> Result<(), Status> {
        let answer = v1::RoundAnswer {
            header: Some(header),
            part: Some(part),
        };
        self.send(Reply::Answer(answer)).await
    }

    /// Sends a reply that may be lost: it is dropped if the client does not read, or is gone.
    fn offer(&self, reply: Reply) {
        let _dropped = self.0.try_send(Ok(reply.into()));
    }
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
    /// Returns the cost of forwards alone.
    pub fn of(step: StepTiming) -> Self {
        let accept = Duration::ZERO;
        Self { step, accept }
    }

    /// Adds another step of the same round.
    pub fn add(&mut self, more: &Self) {
        self.step.queue += more.step.queue;
        self.step.forward += more.step.forward;
        self.step.forwarded_tokens += more.step.forwarded_tokens;
        self.step.reused_tokens += more.step.reused_tokens;
        self.step.batch_tokens = more.step.batch_tokens;
        self.step.batch_sequences = self.step.batch_sequences.max(more.step.batch_sequences);
        self.step.row = more.step.row;
        self.accept += more.accept;
    }

    /// Returns the timing that a reply carries. `began` is when its request came in, `sessions` the number that the
    /// peer serves.
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
            reused_tokens: self.step.reused_tokens as u32,
        }
    }

    /// Counts it, as the first or only step of a task.
    pub fn count(&self, metrics: &PeerMetrics) {
        let step = &self.step;
        metrics.computed(step.queue, step.forward, step.batch_sequences);
    }

    /// Returns its parts in a trace; `prefills` tells whether the forwards also brought the session up to date.
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
