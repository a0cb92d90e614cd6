//! Traces: spans of requests and rounds.
//!
//! A service holds [`Traces`] and makes [`Span`]s of it. Both are nothing where traces are off, and a span is
//! nothing where its request is not sampled: every call on one is then a test of a null pointer. Spans may be
//! made after the fact, with the times that were measured; they say nothing of what a request is about.
//!
//! OpenTelemetry stands behind these types and nowhere else.

pub mod names;
mod span;

use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::context::FutureExt;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, Context, InstrumentationScope, StringValue, Value};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tonic::metadata::MetadataMap;
use tracing::Instrument;

use span::Clock;

pub use opentelemetry::KeyValue as Attribute;
pub use opentelemetry::trace::SpanKind;
pub use span::Span;

/// Which rounds of a traced request have spans, and whether its text may be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Round 0 and then one in so many have spans at the peers; 0 is none but those that are made after the
    /// fact.
    pub round_every: u32,
    /// Whether prompts and outputs stand in spans.
    pub capture_text: bool,
}

/// Where a service's spans go; nowhere by default.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Arc<Tracing>>);

#[derive(Debug)]
struct Tracing {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    options: TraceOptions,
}

impl Traces {
    /// Spans go to `provider`.
    pub fn new(provider: SdkTracerProvider, options: TraceOptions) -> Self {
        Self::named("outrider", provider, options)
    }

    /// Returns the same for one service of the process, which its spans name.
    #[must_use]
    pub fn of(&self, service: &'static str) -> Self {
        self.0.as_ref().map_or_else(Self::default, |tracing| {
            Self::named(service, tracing.provider.clone(), tracing.options)
        })
    }

    fn named(name: &'static str, provider: SdkTracerProvider, options: TraceOptions) -> Self {
        let scope = InstrumentationScope::builder(name)
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(names::SCHEMA_URL);
        let tracer = provider.tracer_with_scope(scope.build());
        Self(Some(Arc::new(Tracing {
            provider,
            tracer,
            options,
        })))
    }

    /// Begins the span of a request that came in just now. Its parent is the span that `metadata` names, if it names
    /// one (W3C `traceparent`); baggage is ignored. Nothing if it is not sampled.
    pub fn request(&self, name: &'static str, metadata: &MetadataMap) -> Span {
        self.server(name, Instant::now(), || Some(of_client(metadata)))
    }

    /// Returns the span of what a coordinator asked, which came at `began`, and `context` with it; an empty one if
    /// `context` is empty, malformed or not sampled.
    pub fn round(&self, name: &'static str, context: &[u8], began: Instant) -> Span {
        self.server(name, began, || {
            Some(TraceContext::from_bytes(context)?.to_parent())
        })
    }

    fn server(
        &self,
        name: &'static str,
        began: Instant,
        parent: impl FnOnce() -> Option<Context>,
    ) -> Span {
        let started = self.0.as_ref().and_then(|tracing| {
            let (kind, parent, clock) = (SpanKind::Server, parent()?, Clock::now());
            Some(Span::start_at(tracing, name, kind, &parent, clock, began))
        });
        started.unwrap_or_default()
    }

    /// Returns whether the `index`th round of a traced request, from 0 on, has spans at the peers.
    pub fn has_spans(&self, index: u64) -> bool {
        let every = self.options().round_every;
        every > 0 && index.is_multiple_of(u64::from(every))
    }

    /// Returns whether prompts and outputs may stand in spans.
    pub fn captures_text(&self) -> bool {
        self.options().capture_text
    }

    fn options(&self) -> TraceOptions {
        self.0
            .as_ref()
            .map_or_else(TraceOptions::default, |tracing| tracing.options)
    }
}

/// Returns a list of texts, as the value of an attribute.
pub fn strings(values: Vec<StringValue>) -> Value {
    Value::Array(Array::String(values))
}

/// Runs `future` so that what it logs is known to belong to the span of `context`: in JSON lines by
/// `trace_id` and `span_id`, at a collector as its own log.
pub async fn within<T>(context: Option<TraceContext>, future: impl Future<Output = T>) -> T {
    let Some(context) = context else {
        return future.await;
    };
    let (trace_id, span_id) = (context.trace_id(), context.span_id.to_string());
    // Of the highest level, so that lines of every level have their ids.
    let lines = tracing::error_span!("trace", trace_id, span_id);
    let attached = future.with_context(context.to_parent());
    attached.instrument(lines).await
}

/// Where a peer's time went. The parts are taken to have followed one another, as far as they are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeBreakdown {
    /// Waiting for the engine.
    pub queue: Duration,
    /// In forwards.
    pub forward: Duration,
    /// Deciding.
    pub accept: Duration,
    /// Sequences in the largest forward.
    pub batch: u32,
    /// Tokens of the session that were forwarded.
    pub forwarded_tokens: u32,
    /// Whether the forwards also brought the session up to date.
    pub prefills: bool,
}

impl Span {
    /// Adds spans of the parts of `breakdown`, which began at `began`, within this one. `measured_by` tells where
    /// the figures come from, if not from here.
    pub fn add_breakdown(
        &mut self,
        breakdown: &TimeBreakdown,
        began: Instant,
        measured_by: Option<&'static str>,
    ) {
        if !self.is_recorded() {
            return;
        }
        let forward = if breakdown.prefills {
            names::PREFILL
        } else {
            names::FORWARD
        };
        let parts = [
            (names::QUEUE, breakdown.queue),
            (forward, breakdown.forward),
            (names::ACCEPT, breakdown.accept),
        ];
        let mut from = began;
        for (name, took) in parts.into_iter().filter(|(_, took)| !took.is_zero()) {
            let mut part = self.child_at(name, SpanKind::Internal, from);
            if name == forward {
                part.set(names::BATCH, i64::from(breakdown.batch));
                part.set(
                    names::FORWARDED_TOKENS,
                    i64::from(breakdown.forwarded_tokens),
                );
            }
            if let Some(measured_by) = measured_by {
                part.set(names::MEASURED_BY, measured_by);
            }
            from += took;
            part.end_at(from);
        }
        self.set(names::BATCH, i64::from(breakdown.batch));
    }
}

/// A span as a round's header names it: 16 bytes of a trace id, 8 of a span id, and one of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    flags: TraceFlags,
}

impl TraceContext {
    fn of(span: &SpanContext) -> Self {
        Self {
            trace_id: span.trace_id(),
            span_id: span.span_id(),
            flags: span.trace_flags(),
        }
    }

    /// Reads a round's header; none if it holds no context, or what cannot be one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (trace_id, rest) = bytes.split_first_chunk()?;
        let (span_id, rest) = rest.split_first_chunk()?;
        let &[flags] = rest else {
            return None;
        };
        let context = Self {
            trace_id: TraceId::from_bytes(*trace_id),
            span_id: SpanId::from_bytes(*span_id),
            flags: TraceFlags::new(flags) & TraceFlags::SAMPLED,
        };
        context.span().is_valid().then_some(context)
    }

    /// Writes a round's header.
    pub fn to_bytes(self) -> Vec<u8> {
        let (trace_id, span_id) = (self.trace_id.to_bytes(), self.span_id.to_bytes());
        [&trace_id[..], &span_id, &[self.flags.to_u8()]].concat()
    }

    /// Returns the trace, in hexadecimal.
    pub fn trace_id(self) -> String {
        self.trace_id.to_string()
    }

    /// Returns the parent of what is started in it.
    fn to_parent(self) -> Context {
        Context::new().with_remote_span_context(self.span())
    }

    fn span(self) -> SpanContext {
        let is_remote = true;
        let state = TraceState::NONE;
        SpanContext::new(self.trace_id, self.span_id, self.flags, is_remote, state)
    }
}

/// Returns the span that a client's metadata names; an empty context if it names none.
fn of_client(metadata: &MetadataMap) -> Context {
    let headers = HeaderExtractor(metadata.as_ref());
    TraceContextPropagator::new().extract_with_context(&Context::new(), &headers)
}

#[cfg(test)]
mod tests;
