//! The spans of one request.

use std::time::Instant;

use server::process::Process;
use server::trace::{Attribute, Kind, Span, TraceContext, Traces, names};
use speculation::session::{Fallback, Input, Peer, Request};
use tonic::{Code, Status};
use wire::v1;

use super::round::RoundTrace;
use super::text::CapturedText;
use crate::peer_links::PeerLinks;
use crate::request::CheckedRequest;

/// The spans of a request that is traced.
#[derive(Debug)]
pub(super) struct RequestTrace {
    traces: Traces,
    root: Span,
    /// Tokenising, later flushing.
    step: Span,
    /// The round under way, or the last.
    round: Option<RoundTrace>,
    /// Prompt and output, where they are captured.
    text: Option<CapturedText>,
}

impl RequestTrace {
    /// A request that came in; none if it is not traced.
    pub(super) fn arrived(
        process: &Process,
        request: &tonic::Request<v1::GenerateRequest>,
    ) -> Option<Self> {
        let traces = process.traces.clone();
        let mut root = traces.request(names::CHAT, request.metadata());
        if !root.is_recorded() {
            return None;
        }
        root.set(names::OPERATION, names::CHAT);
        root.set(names::PROVIDER, "outrider");
        let captures = traces.captures_text();
        Some(Self {
            text: captures.then(|| CapturedText::of(request.get_ref())),
            traces,
            root,
            step: Span::default(),
            round: None,
        })
    }

    /// The span of the request.
    pub(super) fn context(&self) -> Option<TraceContext> {
        self.root.context()
    }

    /// What the peer asked last hangs its spans on; none if the round has no spans of its own.
    pub(super) fn asked_context(&self) -> Option<TraceContext> {
        self.round.as_ref()?.asked_context()
    }

    pub(super) fn admitted(&mut self) {
        self.step = (self.root).child_at(names::TOKENIZE, Kind::Internal, Instant::now());
    }

    pub(super) fn refused(mut self, status: &Status) {
        // Its message may quote the request.
        self.failed(status.code());
    }

    pub(super) fn prepared(&mut self, request: &CheckedRequest, request_id: &str) {
        self.step = Span::default();
        let root = &mut self.root;
        let model = request.group.name();
        root.rename(format!("{} {model}", names::CHAT));
        root.set(names::REQUEST_MODEL, model.to_owned());
        root.set(names::RESPONSE_ID, request_id.to_owned());
        root.set(names::METHOD, request.method.name());
        root.set(names::REQUEST_MAX_TOKENS, i64::from(request.max_tokens));
        root.set(names::REQUEST_SEED, request.seed as i64);
        root.set(names::INPUT_TOKENS, request.prompt.len() as i64);
        let sampling = &request.sampling;
        root.set(names::REQUEST_TEMPERATURE, f64::from(sampling.temperature));
        if sampling.top_k > 0 {
            root.set(names::REQUEST_TOP_K, i64::from(sampling.top_k));
        }
        if sampling.top_p < 1.0 {
            root.set(names::REQUEST_TOP_P, f64::from(sampling.top_p));
        }
    }

    pub(super) fn asked(&mut self, round: u64, attempt: u32, base_len: u32, request: &Request) {
        let index = round.saturating_sub(1);
        let is_new = self
            .round
            .as_ref()
            .is_none_or(|round| round.index() != index);
        if is_new {
            if let Some(before) = self.round.take() {
                before.end(&mut self.root, false);
            }
            let has_spans = self.traces.has_spans(index);
            self.round = Some(RoundTrace::new(&self.root, index, base_len, has_spans));
        }
        let Some(round) = &mut self.round else {
            return;
        };
        if attempt > 0 {
            let failure = round.latest_failure().unwrap_or_default().to_owned();
            let attributes = vec![
                Attribute::new(names::INDEX, index as i64),
                Attribute::new(names::ATTEMPT, i64::from(attempt)),
                Attribute::new(names::PEER, peer_name(request.peer())),
                Attribute::new(names::FAILURE, failure),
            ];
            (self.root).event_at(names::RETRY, Instant::now(), attributes);
        }
        round.asked(attempt, request);
    }

    pub(super) fn answered(&mut self, answer: &Input, links: &PeerLinks) {
        if let Some(round) = &mut self.round {
            round.answered(answer, links);
        }
    }

    pub(super) fn silent(&mut self, peer: Peer) {
        if let Some(round) = &mut self.round {
            round.failed(peer, "no answer in time");
        }
    }

    pub(super) fn fell_back(&mut self, fallback: &Fallback) {
        let attributes = vec![
            Attribute::new(names::PEER, peer_name(fallback.peer)),
            Attribute::new(names::BASE_LEN, i64::from(fallback.position)),
            Attribute::new(names::FALLBACK_REASON, fallback.reason.clone()),
        ];
        (self.root).event_at(names::FALLBACK, Instant::now(), attributes);
        if let Some(round) = &mut self.round {
            round.fell_back(&fallback.reason);
        }
    }

    pub(super) fn migrated(&mut self, migrations: u32) {
        let attributes = vec![Attribute::new(names::MIGRATIONS, i64::from(migrations))];
        (self.root).event_at(names::MIGRATION, Instant::now(), attributes);
    }

    pub(super) fn emitted(&mut self, chunk: &v1::Chunk) {
        if let Some(round) = &mut self.round {
            round.emitted(chunk.token_ids.len());
        }
        if let Some(text) = &mut self.text {
            text.emitted(&chunk.text);
        }
    }

    pub(super) fn round(&mut self, report: &v1::RoundReport) {
        if let Some(round) = &mut self.round {
            round.reported(report);
        }
    }

    pub(super) fn flushing(&mut self) {
        if let Some(last) = self.round.take() {
            last.end(&mut self.root, true);
        }
        self.step = (self.root).child_at(names::FLUSH, Kind::Internal, Instant::now());
    }

    pub(super) fn finished(mut self, finished: &v1::Finished) {
        self.step = Span::default();
        let root = &mut self.root;
        let usage = finished.usage.unwrap_or_default();
        root.set(names::OUTPUT_TOKENS, i64::from(usage.completion_tokens));
        root.set(names::EFFECTIVE_METHOD, finished.effective_method.clone());
        root.set(names::EXACT, finished.exact);
        if let Some(speculation) = &finished.speculation {
            root.set(names::ROUNDS, speculation.rounds as i64);
        }
        if let Some(timing) = finished.timing {
            root.set(names::FIRST_TOKEN, timing.time_to_first_token_ms / 1e3);
        }
        self.ended(finish_reason(finished.reason()));
        if finished.reason() == v1::FinishReason::Error {
            let code = Code::from(finished.error_code as i32);
            self.root.set(names::ERROR_TYPE, format!("{code:?}"));
            self.root.fail(finished.error.clone());
        }
    }

    /// The client left while the request waited in the stage called `stage`.
    pub(super) fn cancelled(&mut self, stage: &'static str) {
        self.root.set(names::STAGE, stage);
    }

    /// Nobody waits for it any more.
    pub(super) fn dropped(mut self) {
        if let Some(last) = self.round.take() {
            last.end(&mut self.root, true);
        }
        self.ended("cancelled");
    }

    fn ended(&mut self, reason: &'static str) {
        let reasons = vec![reason.into()];
        (self.root).set(names::FINISH_REASONS, server::trace::strings(reasons));
        if let Some(text) = self.text.take() {
            self.root.set(names::INPUT_MESSAGES, text.input());
            self.root.set(names::OUTPUT_MESSAGES, text.output(reason));
        }
    }

    fn failed(&mut self, code: Code) {
        self.step = Span::default();
        let name = format!("{code:?}");
        self.root.set(names::ERROR_TYPE, name.clone());
        self.root.fail(name);
    }
}

/// What a peer is called in spans.
pub(super) fn peer_name(peer: Peer) -> &'static str {
    match peer {
        Peer::Drafter => "drafter",
        Peer::Verifier => "verifier",
    }
}

/// Why an output ended, as the conventions call it.
fn finish_reason(reason: v1::FinishReason) -> &'static str {
    match reason {
        v1::FinishReason::Stop => "stop",
        v1::FinishReason::Length => "length",
        v1::FinishReason::Cancelled => "cancelled",
        v1::FinishReason::Error | v1::FinishReason::Unspecified => "error",
    }
}
