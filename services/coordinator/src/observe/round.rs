//! One round of a traced request: its spans, or the event that stands for them.
//!
//! Whether a round is the last, or fails, is known only afterwards. So what is measured of every round is
//! kept until it is over: one that was to have spans has them, a failed one and the last get theirs then,
//! with the times measured here and those that the peers told; all others become events of the request.

use std::net::SocketAddr;
use std::time::Instant;

use ops::trace::{Attribute, Span, SpanKind, names};
use speculation::goodput::Decision;
use speculation::session::{Input, Request};
use speculation::verification::LastToken;

use super::call::PeerCallSpan;
use crate::events::{AnswerTiming, RequestEvent};

/// A round under way.
#[derive(Debug)]
pub(super) struct RoundSpans {
    pub(super) index: u64,
    base_len: u32,
    began: Instant,
    /// Its span, if it was to have one from the start.
    span: Span,
    pub(super) calls: Vec<PeerCallSpan>,
    drafted: usize,
    accepted: usize,
    emitted: usize,
    rejected_position: Option<u32>,
    wire_bytes: Option<u64>,
    fallback: Option<String>,
    length: Option<(Decision, (f64, f64))>,
}

impl RoundSpans {
    pub(super) fn new(root: &Span, index: u64, base_len: u32, has_spans: bool) -> Self {
        let began = Instant::now();
        let span = has_spans.then(|| root.child_at(names::ROUND, SpanKind::Internal, began));
        Self {
            index,
            base_len,
            began,
            span: span.unwrap_or_default(),
            calls: Vec::new(),
            drafted: 0,
            accepted: 0,
            emitted: 0,
            rejected_position: None,
            wire_bytes: None,
            fallback: None,
            length: None,
        }
    }

    pub(super) fn sent(&mut self, attempt: u32, request: &Request) {
        if let Some(last) = self.calls.last_mut() {
            last.ended();
        }
        self.calls
            .push(PeerCallSpan::new(&self.span, attempt, request));
    }

    pub(super) fn observe(&mut self, event: &RequestEvent<'_>) {
        match *event {
            RequestEvent::Answered {
                input,
                timing,
                address,
            } => self.answered(input, timing, address),
            RequestEvent::Failed {
                peer,
                reason,
                address,
                ..
            } => {
                if let Some(call) = self.calls.last_mut() {
                    call.failed(peer, reason, address);
                }
            }
            RequestEvent::LengthDecided { decision, prices } => {
                self.length = Some((decision, prices));
            }
            RequestEvent::FellBack { fallback, .. } => {
                self.fallback = Some(fallback.reason.clone());
            }
            RequestEvent::Emitted { chunk } => self.emitted += chunk.token_ids.len(),
            RequestEvent::RoundEnded { report, .. } => self.wire_bytes = Some(report.wire_bytes),
            _ => {}
        }
    }

    fn answered(&mut self, input: &Input, timing: AnswerTiming, address: Option<SocketAddr>) {
        match input {
            Input::Drafted { block, .. } => self.drafted += block.drafts.len(),
            Input::Verified { verdict, .. } => {
                self.accepted = verdict.path.len();
                let position = self.base_len + verdict.path.len() as u32;
                let is_recovered = verdict.last == LastToken::Recovered;
                self.rejected_position = is_recovered.then_some(position);
            }
            _ => {}
        }
        if let Some(call) = self.calls.last_mut() {
            call.answered(input, timing, address);
        }
    }

    /// Returns what went wrong with the last call that failed.
    pub(super) fn latest_failure(&self) -> Option<&str> {
        self.calls.iter().rev().find_map(PeerCallSpan::failure)
    }

    /// Ends the round: with spans if it has them, failed, or was the last, else as an event of `root`.
    pub(super) fn end(mut self, root: &mut Span, is_last: bool) {
        let failed = self.fallback.is_some() || self.latest_failure().is_some();
        let reason = match (failed, is_last) {
            (true, _) => "failed",
            (false, true) => "last",
            (false, false) => "sampled",
        };
        let ended = self
            .calls
            .last_mut()
            .map_or(self.began, PeerCallSpan::ended);
        let mut span = std::mem::take(&mut self.span);
        if !span.is_recorded() {
            if !failed && !is_last {
                return root.event_at(names::ROUND, ended, self.attributes());
            }
            span = root.child_at(names::ROUND, SpanKind::Internal, self.began);
        }
        span.set_all(self.attributes());
        span.set(names::REASON, reason);
        for call in self.calls {
            call.end(&span);
        }
        span.end_at(ended);
    }

    fn attributes(&self) -> Vec<Attribute> {
        let number = |name, value: Option<i64>| value.map(|value| Attribute::new(name, value));
        let attempts = self.calls.iter().map(|call| call.attempt).max();
        let batch = self.calls.iter().rev().find_map(PeerCallSpan::batch);
        let reason = self.fallback.clone();
        let mut attributes = vec![
            number(names::INDEX, Some(self.index as i64)),
            number(names::BASE_LEN, Some(self.base_len.into())),
            number(names::DRAFT_LEN, Some(self.drafted as i64)),
            number(names::ACCEPTED_LEN, Some(self.accepted as i64)),
            number(names::EMITTED_LEN, Some(self.emitted as i64)),
            number(
                names::REJECTED_POSITION,
                self.rejected_position.map(i64::from),
            ),
            number(names::BATCH, batch.map(i64::from)),
            number(
                names::ATTEMPT,
                attempts.filter(|&most| most > 0).map(i64::from),
            ),
            number(names::WIRE_BYTES, self.wire_bytes.map(|bytes| bytes as i64)),
            reason.map(|reason| Attribute::new(names::FALLBACK_REASON, reason)),
        ];
        // They explain the length of the round under draft length `auto`.
        if let Some((decision, (row, token))) = self.length {
            let gain = decision.gain;
            attributes.extend([
                Some(Attribute::new(names::LENGTH_DECISION, decision.why.name())),
                Some(Attribute::new(names::ROW_PRICE, row)),
                Some(Attribute::new(names::TOKEN_PRICE, token)),
                gain.map(|gain| Attribute::new(names::PREDICTED_GAIN, gain)),
            ]);
        }
        attributes.into_iter().flatten().collect()
    }
}
