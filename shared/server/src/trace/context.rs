//! Which span another service's span hangs on: in a client's metadata, and in a round's header.

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::metadata::MetadataMap;

/// A span as a round's header names it: 16 bytes of a trace id, 8 of a span id, and one of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    pub(super) span_id: SpanId,
    flags: TraceFlags,
}

impl TraceContext {
    pub(super) fn of(span: &SpanContext) -> Self {
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

    /// The trace, in hexadecimal.
    pub fn trace_id(self) -> String {
        self.trace_id.to_string()
    }

    /// The parent of what is started in it.
    pub(super) fn to_parent(self) -> Context {
        Context::new().with_remote_span_context(self.span())
    }

    fn span(self) -> SpanContext {
        let is_remote = true;
        let state = TraceState::NONE;
        SpanContext::new(self.trace_id, self.span_id, self.flags, is_remote, state)
    }
}

/// The span that a client's metadata names; an empty context if it names none.
pub(super) fn of_client(metadata: &MetadataMap) -> Context {
    let headers = HeaderExtractor(metadata.as_ref());
    TraceContextPropagator::new().extract_with_context(&Context::new(), &headers)
}
