//! What is told of requests to whoever watches: logs, metrics, spans. Each consumes the same events.

mod logs;
mod metrics;
mod round;
mod spans;
mod step;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ops::process::Process;
use ops::trace::TraceContext;
use speculation::session::Statistics;
use tonic::Status;
use tonic::metadata::MetadataMap;
use wire::v1;

use crate::events::{Event, Stage};
use logs::RequestLog;
use metrics::{ModelMetrics, RequestMetrics};
use spans::RequestSpans;

pub(crate) use metrics::{Gauges, PeerGauges};

/// Where what is told of requests goes.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    process: Process,
    /// Made once for each model, so that counting takes no lookup of labels.
    models: Arc<HashMap<String, Arc<ModelMetrics>>>,
}

impl Observation {
    /// For requests for `models`. `gauges` is asked at every scrape, for as long as it answers.
    pub(crate) fn new<'a>(
        process: &Process,
        models: impl Iterator<Item = &'a str>,
        gauges: impl Fn() -> Option<Gauges> + Send + Sync + 'static,
    ) -> Self {
        metrics::register(&process.metrics, gauges);
        let of_model = |name: &str| {
            let metrics = ModelMetrics::new(&process.metrics, name);
            (name.to_owned(), Arc::new(metrics))
        };
        Self {
            process: process.clone(),
            models: Arc::new(models.map(of_model).collect()),
        }
    }
}

/// Watches one request from its arrival to its end. Dropped before either [`Observer::refused`] or
/// [`Observer::finish`], it takes the request for cancelled.
#[derive(Debug)]
pub(crate) struct Observer {
    began: Instant,
    stage: Stage,
    ended: bool,
    log: RequestLog,
    metrics: RequestMetrics,
    /// Its spans, if it is traced.
    spans: Option<Box<RequestSpans>>,
}

impl Observer {
    /// A request came in; `tenant` is the name of the token that it shows, if the token has one.
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
            stage: Stage::Preparing,
            ended: false,
            log: RequestLog::new(began, tenant.cloned()),
            metrics: RequestMetrics::new(
                process,
                Arc::clone(&observation.models),
                tenant.map(|name| &**name),
                began,
            ),
            spans: RequestSpans::arrived(process, metadata, request).map(Box::new),
        }
    }

    /// When it came in.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The span of the request, if it is traced.
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

    /// Something happened to the request.
    pub(crate) fn observe(&mut self, event: &Event<'_>) {
        if let Event::Sent { request, .. } = event {
            self.stage = Stage::of(request);
        }
        self.log.observe(event);
        self.metrics.observe(event);
        if let Some(spans) = &mut self.spans {
            spans.observe(event);
        }
    }

    /// It ended before it began: it was not let in, or something is wrong with it, or no verifier is there.
    pub(crate) fn refused(mut self, status: &Status) {
        self.ended = true;
        self.metrics.refused(status);
        if let Some(spans) = &mut self.spans {
            spans.refused(status);
        }
    }

    /// It is over, as the client is told.
    pub(crate) fn finish(mut self, finished: &v1::Finished, statistics: &Statistics) {
        self.ended = true;
        let is_cancelled = finished.reason() == v1::FinishReason::Cancelled;
        let stage = is_cancelled.then_some(self.stage);
        let trace_id = self.context().map(TraceContext::trace_id);
        self.observe(&Event::Finished {
            finished,
            statistics,
            stage,
            trace_id: trace_id.as_deref(),
        });
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if !self.ended {
            self.observe(&Event::Dropped { stage: self.stage });
        }
    }
}
