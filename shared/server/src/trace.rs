//! Traces: spans of requests and rounds.
//!
//! A service holds [`Traces`] and makes [`Span`]s of it. Both are nothing where traces are off, and a span is
//! nothing where its request is not sampled: every call on one is then a test of a null pointer. Spans may be
//! made after the fact, with the times that were measured; they say nothing of what a request is about.
//!
//! OpenTelemetry stands behind these types and nowhere else.

mod clock;
mod context;
pub mod names;
mod share;
mod span;

use std::sync::Arc;
use std::time::Instant;

use opentelemetry::context::FutureExt;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Array, Context, InstrumentationScope, StringValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tonic::metadata::MetadataMap;
use tracing::Instrument;

use clock::Clock;

pub use context::TraceContext;
pub use opentelemetry::KeyValue as Attribute;
pub use opentelemetry::trace::SpanKind as Kind;
pub use share::Share;
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

    /// The same for one service of the process, which its spans name.
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

    /// A request that came in just now. Its parent is the span that `metadata` names, if it names one
    /// (W3C `traceparent`); baggage is ignored. Nothing if it is not sampled.
    pub fn request(&self, name: &'static str, metadata: &MetadataMap) -> Span {
        self.server(name, Instant::now(), || Some(context::of_client(metadata)))
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
            let (kind, parent, clock) = (Kind::Server, parent()?, Clock::now());
            Some(Span::start_at(tracing, name, kind, &parent, clock, began))
        });
        started.unwrap_or_default()
    }

    /// Whether the `index`th round of a traced request, from 0 on, has spans at the peers.
    pub fn has_spans(&self, index: u64) -> bool {
        let every = self.options().round_every;
        every > 0 && index.is_multiple_of(u64::from(every))
    }

    /// Whether prompts and outputs may stand in spans.
    pub fn captures_text(&self) -> bool {
        self.options().capture_text
    }

    fn options(&self) -> TraceOptions {
        self.0
            .as_ref()
            .map_or_else(TraceOptions::default, |tracing| tracing.options)
    }
}

/// A list of texts, as the value of an attribute.
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

#[cfg(test)]
mod tests;
