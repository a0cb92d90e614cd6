//! One round of a traced request: its spans, or the event that stands for them.
//!
//! Whether a round is the last, or fails, is known only afterwards. So what is measured of every round is
//! kept until it is over: one that was to have spans has them, a failed one and the last get theirs then,
//! with the times measured here and those that the peers told; all others become events of the request.

use std::net::SocketAddr;
use std::time::Instant;

use ops::trace::{Attribute, Span, SpanKind, TraceContext, names};
use speculation::goodput::Decision;
use speculation::session::{Input, Request};
use speculation::verification::LastToken;

use super::step::Step;
use crate::events::{AnswerTiming, Event};

/// A round under way.
#[derive(Debug)]
pub(super) struct RoundSpans {
    index: u64,
    base_len: u32,
    began: Instant,
    /// Its span, if it was to have one from the start.
    span: Span,
    steps: Vec<Step>,
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
            steps: Vec::new(),
            drafted: 0,
            accepted: 0,
            emitted: 0,
            rejected_position: None,
            wire_bytes: None,
            fallback: None,
            length: None,
        }
    }

    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// Returns what the peer asked last hangs its spans on.
    pub(super) fn sent_context(&self) -> Option<TraceContext> {
        self.steps.last()?.context()
    }

    pub(super) fn sent(&mut self, attempt: u32, request: &Request) {
        if let Some(last) = self.steps.last_mut() {
            last.ended();
        }
        self.steps.push(Step::new(&self.span, attempt, request));
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
            } => {
                if let Some(step) = self.steps.last_mut() {
                    step.failed(peer, reason, address);
                }
            }
            Event::LengthDecided { decision, prices } => self.length = Some((decision, prices)),
            Event::FellBack { fallback, .. } => self.fallback = Some(fallback.reason.clone()),
            Event::Emitted { chunk } => self.emitted += chunk.token_ids.len(),
            Event::RoundEnded { report, .. } => self.wire_bytes = Some(report.wire_bytes),
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
        if let Some(step) = self.steps.last_mut() {
            step.answered(input, timing, address);
        }
    }

    /// Returns what went wrong with the last step that failed.
    pub(super) fn latest_failure(&self) -> Option<&str> {
        self.steps.iter().rev().find_map(Step::failure)
    }

    /// Ends the round: with spans if it has them, failed, or was the last, else as an event of `root`.
    pub(super) fn end(mut self, root: &mut Span, is_last: bool) {
        let failed = self.fallback.is_some() || self.latest_failure().is_some();
        let reason = match (failed, is_last) {
            (true, _) => "failed",
            (false, true) => "last",
            (false, false) => "sampled",
        };
        let ended = self.steps.last_mut().map_or(self.began, Step::ended);
        let mut span = std::mem::take(&mut self.span);
        if !span.is_recorded() {
            if !failed && !is_last {
                return root.event_at(names::ROUND, ended, self.attributes());
            }
            span = root.child_at(names::ROUND, SpanKind::Internal, self.began);
        }
        span.set_all(self.attributes());
        span.set(names::REASON, reason);
        for step in self.steps {
            step.end(&span);
        }
        span.end_at(ended);
    }

    /// The attributes that explain the length of the round under draft length `auto`.
    fn length_attributes(&self) -> Vec<Attribute> {
        let Some((decision, (row, token))) = self.length else {
            return Vec::new();
        };
        let gain = decision.gain;
        let gain = gain.map(|gain| Attribute::new(names::PREDICTED_GAIN, gain));
        [
            Attribute::new(names::LENGTH_DECISION, decision.why.name()),
            Attribute::new(names::ROW_PRICE, row),
            Attribute::new(names::TOKEN_PRICE, token),
        ]
        .into_iter()
        .chain(gain)
        .collect()
    }

    fn attributes(&self) -> Vec<Attribute> {
        let attempts = self.steps.iter().map(Step::attempt).max();
        let batch = self.steps.iter().rev().find_map(Step::batch);
        let always = [
            (names::INDEX, self.index as i64),
            (names::BASE_LEN, i64::from(self.base_len)),
            (names::DRAFT_LEN, self.drafted as i64),
            (names::ACCEPTED_LEN, self.accepted as i64),
            (names::EMITTED_LEN, self.emitted as i64),
        ];
        let sometimes = [
            (
                names::REJECTED_POSITION,
                self.rejected_position.map(i64::from),
            ),
            (names::BATCH, batch.map(i64::from)),
            (
                names::ATTEMPT,
                attempts.filter(|&most| most > 0).map(i64::from),
            ),
            (names::WIRE_BYTES, self.wire_bytes.map(|bytes| bytes as i64)),
        ];
        let known = sometimes
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let numbers = always.into_iter().chain(known);
        let reason = self.fallback.clone();
        let reason = reason.map(|reason| Attribute::new(names::FALLBACK_REASON, reason));
        numbers
            .map(|(name, value)| Attribute::new(name, value))
            .chain(reason)
            .chain(self.length_attributes())
            .collect()
    }
}
