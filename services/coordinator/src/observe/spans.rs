//! The spans of one request, and the text in them where it is captured.

use std::time::Instant;

use ops::process::Process;
use ops::trace::{Attribute, Span, SpanKind, TraceContext, Traces, names};
use serde_json::{Value, json};
use speculation::session::{Fallback, Request};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use v1::generate_request::Prompt;
use wire::v1;

use super::metrics::outcome;
use super::round::RoundSpans;
use crate::admitted::AdmittedRequest;
use crate::events::{RequestEvent, RequestStage};

/// The spans of a request that is traced.
#[derive(Debug)]
pub(super) struct RequestSpans {
    traces: Traces,
    root: Span,
    /// Tokenising, later flushing.
    step: Span,
    /// The round under way, or the last.
    round: Option<RoundSpans>,
    /// Prompt and output, where they are captured.
    text: Option<CapturedText>,
}

impl RequestSpans {
    /// Begins with a request that came in; none if it is not traced.
    pub(super) fn arrived(
        process: &Process,
        metadata: &MetadataMap,
        request: &v1::GenerateRequest,
    ) -> Option<Self> {
        let traces = process.traces.clone();
        let mut root = traces.request(names::CHAT, metadata);
        if !root.is_recorded() {
            return None;
        }
        root.set(names::OPERATION, names::CHAT);
        root.set(names::PROVIDER, "outrider");
        let captures = traces.captures_text();
        Some(Self {
            text: captures.then(|| CapturedText::of(request)),
            traces,
            root,
            step: Span::default(),
            round: None,
        })
    }

    /// Returns the span of the request.
    pub(super) fn context(&self) -> Option<TraceContext> {
        self.root.context()
    }

    /// Returns what the peer asked last hangs its spans on; none if the round has no spans of its own.
    pub(super) fn sent_context(&self) -> Option<TraceContext> {
        self.round.as_ref()?.calls.last()?.span.context()
    }

    pub(super) fn refused(&mut self, status: &Status) {
        self.step = Span::default();
        // Its message may quote the request.
        let name = format!("{:?}", status.code());
        self.root.set(names::ERROR_TYPE, name.clone());
        self.root.fail(name);
    }

    pub(super) fn observe(&mut self, event: &RequestEvent<'_>) {
        if let Some(round) = &mut self.round {
            round.observe(event);
        }
        match *event {
            RequestEvent::Admitted => {
                let now = Instant::now();
                self.step = self.root.child_at(names::TOKENIZE, SpanKind::Internal, now);
            }
            RequestEvent::Prepared {
                request,
                request_id,
            } => self.prepared(request, request_id),
            RequestEvent::Sent {
                round,
                attempt,
                base_len,
                request,
            } => self.sent(round, attempt, base_len, request),
            RequestEvent::Moved { migrations, .. } => {
                let attributes = vec![Attribute::new(names::MIGRATIONS, i64::from(migrations))];
                (self.root).event_at(names::MIGRATION, Instant::now(), attributes);
            }
            RequestEvent::Flushing => self.flushing(),
            RequestEvent::Finished {
                finished, stage, ..
            } => {
                if let Some(stage) = stage {
                    self.root.set(names::STAGE, stage.into_str());
                }
                self.finished(finished);
            }
            RequestEvent::Dropped { stage } => self.dropped(stage),
            RequestEvent::FellBack { fallback, .. } => self.fell_back(fallback),
            RequestEvent::Emitted { chunk } => {
                if let Some(text) = &mut self.text {
                    text.output.push_str(&chunk.text);
                }
            }
            RequestEvent::LengthDecided { .. }
            | RequestEvent::Answered { .. }
            | RequestEvent::Streamed { .. }
            | RequestEvent::Failed { .. }
            | RequestEvent::RoundEnded { .. } => {}
        }
    }

    fn prepared(&mut self, request: &AdmittedRequest, request_id: &str) {
        self.step = Span::default();
        let root = &mut self.root;
        let model = &request.model;
        root.rename(format!("{} {model}", names::CHAT));
        root.set(names::REQUEST_MODEL, model.clone());
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

    fn sent(&mut self, round: u64, attempt: u32, base_len: u32, request: &Request) {
        let index = round.saturating_sub(1);
        let is_new = self.round.as_ref().is_none_or(|round| round.index != index);
        if is_new {
            if let Some(before) = self.round.take() {
                before.end(&mut self.root, false);
            }
            let has_spans = self.traces.has_spans(index);
            self.round = Some(RoundSpans::new(&self.root, index, base_len, has_spans));
        }
        let Some(round) = &mut self.round else {
            return;
        };
        if attempt > 0 {
            let failure = round.latest_failure().unwrap_or_default().to_owned();
            let attributes = vec![
                Attribute::new(names::INDEX, index as i64),
                Attribute::new(names::ATTEMPT, i64::from(attempt)),
                Attribute::new(names::PEER, request.peer().name()),
                Attribute::new(names::FAILURE, failure),
            ];
            (self.root).event_at(names::RETRY, Instant::now(), attributes);
        }
        round.sent(attempt, request);
    }

    fn fell_back(&mut self, fallback: &Fallback) {
        let attributes = vec![
            Attribute::new(names::PEER, fallback.peer.name()),
            Attribute::new(names::BASE_LEN, i64::from(fallback.position)),
            Attribute::new(names::FALLBACK_REASON, fallback.reason.clone()),
        ];
        (self.root).event_at(names::FALLBACK, Instant::now(), attributes);
    }

    fn flushing(&mut self) {
        if let Some(last) = self.round.take() {
            last.end(&mut self.root, true);
        }
        self.step = (self.root).child_at(names::FLUSH, SpanKind::Internal, Instant::now());
    }

    fn finished(&mut self, finished: &v1::Finished) {
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
        // The conventions know no deadline.
        self.ended(match outcome(finished) {
            "deadline" => "error",
            reason => reason,
        });
        if finished.reason() == v1::FinishReason::Error {
            let code = Code::from(finished.error_code as i32);
            self.root.set(names::ERROR_TYPE, format!("{code:?}"));
            self.root.fail(finished.error.clone());
        }
    }

    /// Ends a request that nobody waits for any more.
    fn dropped(&mut self, stage: RequestStage) {
        self.root.set(names::STAGE, stage.into_str());
        if let Some(last) = self.round.take() {
            last.end(&mut self.root, true);
        }
        self.ended("cancelled");
    }

    fn ended(&mut self, reason: &'static str) {
        let reasons = vec![reason.into()];
        (self.root).set(names::FINISH_REASONS, ops::trace::strings(reasons));
        if let Some(text) = self.text.take() {
            self.root
                .set(names::INPUT_MESSAGES, json!(text.input).to_string());
            self.root.set(names::OUTPUT_MESSAGES, text.output(reason));
        }
    }
}

/// What was asked and what was answered.
#[derive(Debug)]
struct CapturedText {
    input: Vec<Value>,
    output: String,
}

impl CapturedText {
    /// Returns the prompt of `request`, if it is text.
    fn of(request: &v1::GenerateRequest) -> Self {
        let messages = request.messages.iter();
        let mut input: Vec<_> = messages
            .map(|it| message_json(&it.role, &it.content))
            .collect();
        if let Some(Prompt::Text(text)) = &request.prompt {
            input.push(message_json("user", text));
        }
        Self {
            input,
            output: String::new(),
        }
    }

    /// Returns the output as JSON, and why it ended.
    fn output(&self, finish_reason: &str) -> String {
        let mut message = message_json("assistant", &self.output);
        message["finish_reason"] = finish_reason.into();
        json!([message]).to_string()
    }
}

/// Returns a message as JSON.
fn message_json(role: &str, content: &str) -> Value {
    json!({ "role": role, "parts": [{ "type": "text", "content": content }] })
}
