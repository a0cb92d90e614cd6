//! A request's life as it is told to whoever watches: logs, spans, figures.
//!
//! The driver and the gRPC front say what happened, once and here; the observer passes it on. It decides
//! nothing, so a request takes the same course whether it is watched or not.

mod round;
mod text;
mod trace;

use std::time::Instant;

use server::process::Process;
use server::trace::TraceContext;
use speculation::session::{Fallback, Input, Peer, Request, Statistics};
use tonic::Status;
use wire::v1;

use crate::figures::RequestFigures;
use crate::peer_links::PeerLinks;
use crate::request::CheckedRequest;
use trace::RequestTrace;

/// What a request is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// To be let in, checked and tokenised.
    Preparing,
    /// A drafter.
    Drafting,
    /// A verdict.
    Verifying,
    /// The target, which decodes alone.
    Decoding,
}

impl Stage {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [
        Self::Preparing,
        Self::Drafting,
        Self::Verifying,
        Self::Decoding,
    ];

    /// Its name in logs, spans and figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Drafting => "drafting",
            Self::Verifying => "verifying",
            Self::Decoding => "decoding",
        }
    }

    fn of(request: &Request) -> Self {
        match request {
            Request::Draft { .. } => Self::Drafting,
            Request::Verify { .. } => Self::Verifying,
            Request::Decode { .. } => Self::Decoding,
        }
    }
}

/// Watches one request from its arrival to its end. Dropped before either [`Observer::refused`] or
/// [`Observer::finished`], it takes the request for cancelled.
#[derive(Debug)]
pub(crate) struct Observer {
    began: Instant,
    /// What the client is told its request is called; empty before it is prepared.
    request_id: String,
    stage: Stage,
    ended: bool,
    figures: RequestFigures,
    /// Losses told so far.
    fallbacks: usize,
    /// Moves told so far.
    migrations: u32,
    /// Its spans, if it is traced.
    trace: Option<Box<RequestTrace>>,
}

impl Observer {
    /// A request came in.
    pub(crate) fn arrived(
        process: &Process,
        request: &tonic::Request<v1::GenerateRequest>,
    ) -> Self {
        Self {
            began: Instant::now(),
            request_id: String::new(),
            stage: Stage::Preparing,
            ended: false,
            figures: RequestFigures::new(&process.metrics),
            fallbacks: 0,
            migrations: 0,
            trace: RequestTrace::arrived(process, request).map(Box::new),
        }
    }

    /// When it came in.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The span of the request, if it is traced.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.trace.as_ref()?.context()
    }

    /// What the peer asked last hangs its spans on, if it is to make any.
    pub(crate) fn asked_context(&self) -> Option<TraceContext> {
        self.trace.as_ref()?.asked_context()
    }

    /// What log lines of the request are written in.
    pub(crate) fn log_lines(&self) -> tracing::Span {
        // Of the highest level, so that lines of every level have their request's id.
        tracing::error_span!("request", request_id = self.request_id)
    }

    /// It was let in.
    pub(crate) fn admitted(&mut self) {
        self.figures.admitted();
        if let Some(trace) = &mut self.trace {
            trace.admitted();
        }
    }

    /// It ended before it began: it was not let in, or something is wrong with it, or no verifier is there.
    pub(crate) fn refused(mut self, status: &Status) {
        self.figures.refused(status);
        self.ended = true;
        if let Some(trace) = self.trace.take() {
            trace.refused(status);
        }
    }

    /// It is in range, its prompt is in tokens; `request_id` is what the client is told.
    pub(crate) fn prepared(&mut self, request: &CheckedRequest, request_id: String) {
        self.figures.prepared(request);
        if let Some(trace) = &mut self.trace {
            trace.prepared(request, &request_id);
        }
        self.request_id = request_id;
    }

    /// A peer is asked, for the `attempt`th time after the first.
    pub(crate) fn asked(&mut self, round: u64, attempt: u32, base_len: u32, request: &Request) {
        self.stage = Stage::of(request);
        self.figures.asked(attempt, request.peer());
        if attempt > 0 {
            tracing::debug!(round, attempt, peer = ?request.peer(), "asking again");
        }
        if let Some(trace) = &mut self.trace {
            trace.asked(round, attempt, base_len, request);
        }
    }

    /// The peer asked has answered, or failed to; `links` know the times of the round so far.
    pub(crate) fn answered(&mut self, answer: &Input, links: &PeerLinks) {
        self.figures.answered(answer, links.fault);
        if let Some(trace) = &mut self.trace {
            trace.answered(answer, links);
        }
    }

    /// The peer asked has not answered in time.
    pub(crate) fn silent(&mut self, peer: Peer) {
        self.figures.silent();
        if let Some(trace) = &mut self.trace {
            trace.silent(peer);
        }
    }

    /// What the session has lost so far: told after every answer, the new ones are taken note of.
    pub(crate) fn losses(&mut self, fallbacks: &[Fallback], migrations: u32) {
        for fallback in &fallbacks[self.fallbacks..] {
            self.figures.fell_back();
            let (peer, position, reason) = (fallback.peer, fallback.position, &fallback.reason);
            tracing::debug!(?peer, position, reason, "going on without a peer");
            if let Some(trace) = &mut self.trace {
                trace.fell_back(fallback);
            }
        }
        self.fallbacks = fallbacks.len();
        if migrations > self.migrations {
            tracing::debug!(migrations, "moved to another replica");
            self.figures.moved(migrations - self.migrations);
            if let Some(trace) = &mut self.trace {
                trace.migrated(migrations);
            }
            self.migrations = migrations;
        }
    }

    /// Output is about to go to the client.
    pub(crate) fn emitted(&mut self, chunk: &v1::Chunk) {
        self.figures.emitted(chunk);
        if let Some(trace) = &mut self.trace {
            trace.emitted(chunk);
        }
    }

    /// A round is over that gave tokens; decoding alone has none.
    pub(crate) fn round(&mut self, report: &v1::RoundReport) {
        self.figures.round(report, self.stage == Stage::Verifying);
        if let Some(trace) = &mut self.trace {
            trace.round(report);
        }
    }

    /// The output is complete; what is left is to tell the client.
    pub(crate) fn flushing(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.flushing();
        }
    }

    /// The request is over, as the client is told.
    pub(crate) fn finished(mut self, finished: &v1::Finished, statistics: &Statistics) {
        self.ended = true;
        if finished.reason() == v1::FinishReason::Cancelled {
            self.figures.cancelled(self.stage);
        }
        let trace_id = self.context().map(TraceContext::trace_id);
        self.figures
            .finished(finished, statistics, self.began, trace_id.as_deref());
        let tokens = finished.usage.map_or(0, |usage| usage.completion_tokens);
        let total_ms = self.began.elapsed().as_millis() as u64;
        let fallbacks = self.fallbacks;
        if finished.reason() == v1::FinishReason::Error {
            let error = &finished.error;
            tracing::warn!(error, tokens, total_ms, fallbacks, "request failed");
        } else {
            let reason = finished.reason().as_str_name();
            tracing::info!(reason, tokens, total_ms, fallbacks, "request finished");
        }
        if let Some(mut trace) = self.trace.take() {
            if finished.reason() == v1::FinishReason::Cancelled {
                trace.cancelled(self.stage.name());
            }
            trace.finished(finished);
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.figures.cancelled(self.stage);
        let stage = self.stage.name();
        tracing::debug!(stage, "request dropped");
        if let Some(mut trace) = self.trace.take() {
            trace.cancelled(stage);
            trace.dropped();
        }
    }
}
