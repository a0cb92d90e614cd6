//! What is told of requests to whoever watches: logs, metrics, spans, the board. Each consumes the same events.

mod board;
mod call;
mod logs;
mod metrics;
mod round;
mod spans;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ops::process::Process;
use ops::trace::TraceContext;
use speculation::session::Statistics;
use tonic::Status;
use tonic::metadata::MetadataMap;
use wire::v1;

use crate::admitted::AdmittedRequest;
use crate::events::{RequestEvent, RequestStage};
pub(crate) use board::Board;
use board::RequestPlace;
use logs::RequestLog;
use metrics::{ModelMetrics, RequestMetrics};
use spans::RequestSpans;

/// Where what is told of requests goes.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    process: Process,
    /// What operators see of them.
    pub(crate) board: Arc<Board>,
    /// Made once for each model, so that counting takes no lookup of labels.
    models: Arc<HashMap<String, Arc<ModelMetrics>>>,
}

impl Observation {
    /// Observes requests for `models`.
    pub(crate) fn new<'a>(process: &Process, models: impl Iterator<Item = &'a str>) -> Self {
        metrics::register(&process.metrics);
        let of_model = |name: &str| {
            let metrics = ModelMetrics::new(&process.metrics, name);
            (name.to_owned(), Arc::new(metrics))
        };
        Self {
            process: process.clone(),
            board: Arc::default(),
            models: Arc::new(models.map(of_model).collect()),
        }
    }
}

/// Watches one request from its arrival to its end. Dropped before either [`RequestObserver::refused`] or
/// [`RequestObserver::finish`], it takes the request for cancelled.
#[derive(Debug)]
pub(crate) struct RequestObserver {
    began: Instant,
    stage: RequestStage,
    ended: bool,
    log: RequestLog,
    metrics: RequestMetrics,
    place: RequestPlace,
    /// Its spans, if it is traced.
    spans: Option<Box<RequestSpans>>,
}

impl RequestObserver {
    /// Begins with a request that came in; `tenant` is the name of the token that it shows, if the token has one.
    pub(crate) fn arrived(
        observation: &Observation,
        metadata: &MetadataMap,
        tenant: Option<&Arc<str>>,
        request: &v1::GenerateRequest,
    ) -> Self {
        let began = Instant::now();
        let process = &observation.process;
        Self {
            began,
            stage: RequestStage::Preparing,
            ended: false,
            log: RequestLog {
                began,
                request_id: String::new(),
                tenant: tenant.cloned(),
            },
            metrics: RequestMetrics::new(
                process,
                Arc::clone(&observation.models),
                tenant.map(|name| &**name),
                began,
            ),
            place: RequestPlace::new(&observation.board, began),
            spans: RequestSpans::arrived(process, metadata, request).map(Box::new),
        }
    }

    /// Returns when it came in.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Returns the span of the request, if it is traced.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.spans.as_ref()?.context()
    }

    /// Returns what the peer asked last hangs its spans on, if it is to make any.
    pub(crate) fn sent_context(&self) -> Option<TraceContext> {
        self.spans.as_ref()?.sent_context()
    }

    /// Returns the span that the request's log lines are written in.
    pub(crate) fn log_lines(&self) -> tracing::Span {
        self.log.lines()
    }

    /// Tells logs, metrics, spans and the board what happened to the request.
    pub(crate) fn observe(&mut self, event: &RequestEvent<'_>) {
        if let RequestEvent::Sent { request, .. } = event {
            self.stage = RequestStage::of(request);
        }
        self.log.observe(event);
        self.metrics.observe(event);
        self.place.observe(event);
        if let Some(spans) = &mut self.spans {
            spans.observe(event);
        }
    }

    /// Ends a request that never began: it was not let in, or something is wrong with it, or no verifier is there.
    pub(crate) fn refused(mut self, status: &Status) {
        self.ended = true;
        self.metrics.refused(status);
        if let Some(spans) = &mut self.spans {
            spans.refused(status);
        }
    }

    /// Ends a request, as the client is told.
    pub(crate) fn finish(
        mut self,
        request: &AdmittedRequest,
        finished: &v1::Finished,
        statistics: &Statistics,
    ) {
        self.ended = true;
        let is_cancelled = finished.reason() == v1::FinishReason::Cancelled;
        let stage = is_cancelled.then_some(self.stage);
        let trace_id = self.context().map(TraceContext::trace_id);
        self.observe(&RequestEvent::Finished {
            request,
            finished,
            statistics,
            stage,
            trace_id: trace_id.as_deref(),
        });
    }
}

impl Drop for RequestObserver {
    fn drop(&mut self) {
        if !self.ended {
            self.observe(&RequestEvent::Dropped { stage: self.stage });
        }
    }
}
