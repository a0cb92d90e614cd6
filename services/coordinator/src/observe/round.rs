//! One round of a traced request: its spans, or the event that stands for them.
//!
//! Whether a round is the last, or fails, is known only afterwards. So what is measured of every round is
//! kept until it is over: one that was to have spans has them, a failed one and the last get theirs then,
//! with the times measured here and those that the peers told; all others become events of the request.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use server::trace::{Attribute, Kind, Share, Span, TraceContext, names};
use speculation::session::{Input, Peer, Request};
use speculation::verification::LastToken;
use wire::v1;

use crate::events::{AnswerTiming, Event};

/// A round under way.
#[derive(Debug)]
pub(super) struct RoundSpans {
    index: u64,
    base_len: u32,
    began: Instant,
    ended: Instant,
    /// Its span, if it was to have one from the start.
    span: Span,
    steps: Vec<Step>,
    drafted: usize,
    accepted: usize,
    emitted: usize,
    rejected_position: Option<u32>,
    wire_bytes: Option<u64>,
    failed: bool,
    fallback: Option<String>,
}

/// What one peer was asked once.
#[derive(Debug)]
struct Step {
    name: &'static str,
    attempt: u32,
    began: Instant,
    ended: Instant,
    span: Span,
    address: Option<SocketAddr>,
    timing: Option<v1::Timing>,
    /// Tokens decoded alone.
    decoded: usize,
    /// Deciding here.
    decided: Duration,
    failure: Option<(Peer, String)>,
    /// Whether nothing was heard of it yet.
    is_waiting: bool,
}

impl RoundSpans {
    pub(super) fn new(root: &Span, index: u64, base_len: u32, has_spans: bool) -> Self {
        let began = Instant::now();
        let span = if has_spans {
            root.child_at(names::ROUND, Kind::Internal, began)
        } else {
            Span::default()
        };
        Self {
            index,
            base_len,
            began,
            ended: began,
            span,
            steps: Vec::new(),
            drafted: 0,
            accepted: 0,
            emitted: 0,
            rejected_position: None,
            wire_bytes: None,
            failed: false,
            fallback: None,
        }
    }

    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// What the peer asked last hangs its spans on.
    pub(super) fn sent_context(&self) -> Option<TraceContext> {
        self.steps.last()?.span.context()
    }

    pub(super) fn sent(&mut self, attempt: u32, request: &Request) {
        let name = match request {
            Request::Draft { .. } => names::DRAFT,
            Request::Verify { .. } => names::VERIFY,
            Request::Decode { .. } => names::DECODE,
        };
        let began = Instant::now();
        self.ended = began;
        self.steps.push(Step {
            name,
            attempt,
            began,
            ended: began,
            span: self.span.child_at(name, Kind::Client, began),
            address: None,
            timing: None,
            decoded: 0,
            decided: Duration::ZERO,
            failure: None,
            is_waiting: true,
        });
    }

    pub(super) fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Answered {
                input,
                timing,
                address,
            } => self.answered(input, timing, address),
            Event::Failed {
                peer,
                reason,
                address,
                ..
            } => self.failed(peer, reason, address),
            Event::Emitted { chunk } => self.emitted += chunk.token_ids.len(),
            Event::RoundEnded { report, .. } => self.wire_bytes = Some(report.wire_bytes),
            _ => {}
        }
    }

    fn answered(&mut self, input: &Input, timing: AnswerTiming, address: Option<SocketAddr>) {
        self.ended = Instant::now();
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.ended = self.ended;
        step.is_waiting = false;
        step.decided = timing.decided;
        step.address = step.address.or(address);
        let so_far = step.timing;
        step.timing = Some(timing.reported);
        match input {
            Input::Drafted { block, .. } => self.drafted += block.drafts.len(),
            Input::Verified { verdict, .. } => {
                self.accepted = verdict.path.len();
                let position = self.base_len + verdict.path.len() as u32;
                let is_recovered = verdict.last == LastToken::Recovered;
                self.rejected_position = is_recovered.then_some(position);
            }
            Input::Decoded { tokens, .. } => {
                step.decoded += tokens.len();
                step.timing = Some(added(so_far, timing.reported));
            }
            _ => {}
        }
    }

    /// What was asked last has failed for `peer`.
    fn failed(&mut self, peer: Peer, reason: &str, address: Option<SocketAddr>) {
        self.failed = true;
        self.ended = Instant::now();
        if let Some(step) = self.steps.last_mut() {
            step.ended = self.ended;
            step.is_waiting = false;
            step.address = step.address.or(address);
            step.failure = Some((peer, reason.to_owned()));
        }
    }

    /// What went wrong with the step before.
    pub(super) fn latest_failure(&self) -> Option<&str> {
        let failures = self
            .steps
            .iter()
            .rev()
            .filter_map(|step| step.failure.as_ref());
        failures.map(|(_, reason)| reason.as_str()).next()
    }

    pub(super) fn fell_back(&mut self, reason: &str) {
        self.failed = true;
        self.fallback = Some(reason.to_owned());
    }

    /// Ends the round: with spans if it has them, failed, or was the last, else as an event of `root`.
    pub(super) fn end(mut self, root: &mut Span, is_last: bool) {
        let reason = match (self.failed, is_last) {
            (true, _) => "failed",
            (false, true) => "last",
            (false, false) => "sampled",
        };
        if let Some(step) = self.steps.last_mut().filter(|step| step.is_waiting) {
            // The client left meanwhile.
            self.ended = Instant::now();
            step.ended = self.ended;
        }
        let mut span = std::mem::take(&mut self.span);
        if !span.is_recorded() {
            if !self.failed && !is_last {
                return root.event_at(names::ROUND, self.ended, self.attributes());
            }
            span = root.child_at(names::ROUND, Kind::Internal, self.began);
        }
        span.set_all(self.attributes());
        span.set(names::REASON, reason);
        let ended = self.ended;
        for step in self.steps {
            step.end(&span);
        }
        span.end_at(ended);
    }

    fn attributes(&self) -> Vec<Attribute> {
        let count = |name, value: usize| Attribute::new(name, value as i64);
        let mut attributes = vec![
            Attribute::new(names::INDEX, self.index as i64),
            Attribute::new(names::BASE_LEN, i64::from(self.base_len)),
            count(names::DRAFT_LEN, self.drafted),
            count(names::ACCEPTED_LEN, self.accepted),
            count(names::EMITTED_LEN, self.emitted),
        ];
        let optional = |name, value: Option<i64>| value.map(|value| Attribute::new(name, value));
        let attempts = self.steps.iter().map(|step| i64::from(step.attempt)).max();
        let batch = self.steps.iter().rev().find_map(|step| step.timing);
        attributes.extend(optional(
            names::REJECTED_POSITION,
            self.rejected_position.map(i64::from),
        ));
        attributes.extend(optional(
            names::BATCH,
            batch.map(|timing| timing.batch.into()),
        ));
        attributes.extend(optional(names::ATTEMPT, attempts.filter(|&most| most > 0)));
        attributes.extend(optional(
            names::WIRE_BYTES,
            self.wire_bytes.map(|bytes| bytes as i64),
        ));
        if let Some(reason) = &self.fallback {
            attributes.push(Attribute::new(names::FALLBACK_REASON, reason.clone()));
        }
        attributes
    }
}

impl Step {
    /// Ends the step within the span of its round. If the peer was not asked to make spans of its own, its
    /// share is made of the figures that it told.
    fn end(mut self, round: &Span) {
        let mut span = std::mem::take(&mut self.span);
        if !span.is_recorded() {
            span = round.child_at(self.name, Kind::Client, self.began);
            if let Some(timing) = self.timing {
                let (share, began) = self.peer_share(timing);
                span.add_share(&share, began, Some("peer_figures"));
            }
        }
        if !self.decided.is_zero() {
            let began = self.ended.checked_sub(self.decided).unwrap_or(self.began);
            let accept = span.child_at(names::ACCEPT, Kind::Internal, began);
            accept.end_at(self.ended);
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
            span.set(names::PEER, peer_name(peer));
            span.fail(reason);
        }
        span.end_at(self.ended);
    }

    /// What the peer says of its share, and when that began if it stood in the middle of the wait for it.
    fn peer_share(&self, timing: v1::Timing) -> (Share, Instant) {
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let away = self.ended - self.began;
        let share = Share {
            queue: micros(timing.queue_us),
            forward: micros(timing.forward_us),
            accept: micros(timing.accept_us),
            batch: timing.batch,
            forwarded_tokens: timing.forwarded_tokens,
            prefills: false,
        };
        let outside = away.saturating_sub(micros(timing.total_us));
        (share, self.began + outside / 2)
    }
}

/// What a peer says of its share in all, after `so_far`.
fn added(so_far: Option<v1::Timing>, timing: v1::Timing) -> v1::Timing {
    let so_far = so_far.unwrap_or_default();
    v1::Timing {
        queue_us: so_far.queue_us.saturating_add(timing.queue_us),
        forward_us: so_far.forward_us.saturating_add(timing.forward_us),
        accept_us: so_far.accept_us.saturating_add(timing.accept_us),
        total_us: so_far.total_us.saturating_add(timing.total_us),
        batch: so_far.batch.max(timing.batch),
        forwarded_tokens: so_far
            .forwarded_tokens
            .saturating_add(timing.forwarded_tokens),
    }
}

/// What a peer is called in spans.
pub(super) fn peer_name(peer: Peer) -> &'static str {
    match peer {
        Peer::Drafter => "drafter",
        Peer::Verifier => "verifier",
    }
}
