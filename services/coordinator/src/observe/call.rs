//! What one peer was asked once in a round, and its spans.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ops::trace::{Span, SpanKind, TimeBreakdown, names};
use speculation::session::{Input, Peer, Request};
use wire::{report, v1};

use crate::events::AnswerTiming;

/// What one peer was asked once.
#[derive(Debug)]
pub(super) struct PeerCallSpan {
    name: &'static str,
    pub(super) attempt: u32,
    began: Instant,
    /// When it was last heard of; none if nothing was heard yet.
    ended: Option<Instant>,
    pub(super) span: Span,
    address: Option<SocketAddr>,
    timing: Option<v1::Timing>,
    /// Tokens decoded alone.
    decoded: usize,
    /// Deciding here.
    decided: Duration,
    failure: Option<(Peer, String)>,
}

impl PeerCallSpan {
    /// Returns a call within the span of its round, if that is recorded from the start.
    pub(super) fn new(round: &Span, attempt: u32, request: &Request) -> Self {
        let name = match request {
            Request::Draft { .. } => names::DRAFT,
            Request::Verify { .. } => names::VERIFY,
            Request::Decode { .. } => names::DECODE,
            Request::Score { .. } => names::SCORE,
        };
        let began = Instant::now();
        Self {
            name,
            attempt,
            began,
            ended: None,
            span: round.child_at(name, SpanKind::Client, began),
            address: None,
            timing: None,
            decoded: 0,
            decided: Duration::ZERO,
            failure: None,
        }
    }

    /// Sequences of the peer's largest forward, as it says.
    pub(super) fn batch(&self) -> Option<u32> {
        self.timing.map(|timing| timing.batch)
    }

    pub(super) fn failure(&self) -> Option<&str> {
        let (_, reason) = self.failure.as_ref()?;
        Some(reason)
    }

    /// Returns when it ended: now, if its client left before anything was heard.
    pub(super) fn ended(&mut self) -> Instant {
        *self.ended.get_or_insert_with(Instant::now)
    }

    pub(super) fn answered(
        &mut self,
        input: &Input,
        timing: AnswerTiming,
        address: Option<SocketAddr>,
    ) {
        self.heard(address);
        self.decided = timing.decided;
        let mut reported = timing.reported;
        if let Input::Decoded { tokens, .. } = input {
            self.decoded += tokens.len();
        }
        // Answers that come in parts report a timing with each.
        if let Input::Decoded { .. } | Input::Scored { .. } = input {
            reported = report::together(self.timing.unwrap_or_default(), reported);
        }
        self.timing = Some(reported);
    }

    pub(super) fn failed(&mut self, peer: Peer, reason: &str, address: Option<SocketAddr>) {
        self.heard(address);
        self.failure = Some((peer, reason.to_owned()));
    }

    fn heard(&mut self, address: Option<SocketAddr>) {
        self.ended = Some(Instant::now());
        self.address = self.address.or(address);
    }

    /// Ends the call within the span of its round. If the peer was not asked to make spans of its own, its
    /// share is made of the figures that it told.
    pub(super) fn end(mut self, round: &Span) {
        let ended = self.ended();
        let mut span = std::mem::take(&mut self.span);
        if !span.is_recorded() {
            span = round.child_at(self.name, SpanKind::Client, self.began);
            if let Some(timing) = self.timing {
                // It stood in the middle of the wait for it.
                let outside = (ended - self.began).saturating_sub(micros(timing.total_us));
                let began = self.began + outside / 2;
                span.add_breakdown(&breakdown(timing), began, Some("peer_figures"));
            }
        }
        if !self.decided.is_zero() {
            let began = ended.checked_sub(self.decided).unwrap_or(self.began);
            let accept = span.child_at(names::ACCEPT, SpanKind::Internal, began);
            accept.end_at(ended);
        }
        if let Some(address) = self.address {
            span.set(names::SERVER_ADDRESS, address.ip().to_string());
            span.set(names::SERVER_PORT, i64::from(address.port()));
        }
        if self.attempt > 0 {
            span.set(names::ATTEMPT, i64::from(self.attempt));
        }
        if self.decoded > 0 {
            span.set(names::DECODED_TOKENS, self.decoded as i64);
        }
        if let Some((peer, reason)) = self.failure {
            span.set(names::PEER, peer.name());
            span.fail(reason);
        }
        span.end_at(ended);
    }
}

fn micros(us: u32) -> Duration {
    Duration::from_micros(us.into())
}

/// Returns a peer's part of the time, from what it said of it.
fn breakdown(timing: v1::Timing) -> TimeBreakdown {
    TimeBreakdown {
        queue: micros(timing.queue_us),
        forward: micros(timing.forward_us),
        accept: micros(timing.accept_us),
        batch: timing.batch,
        forwarded_tokens: timing.forwarded_tokens,
        prefills: false,
    }
}
