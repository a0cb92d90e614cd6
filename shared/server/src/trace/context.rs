//! Which span another service's span hangs on: in a client's metadata, and in a round's header.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::metadata::MetadataMap;

/// A span as a round's header names it: trace id, span id, flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    flags: TraceFlags,
}

/// Bytes of a trace id and of a span id.
const TRACE_ID: usize = 16;
const SPAN_ID: usize = 8;

impl TraceContext {
    /// Bytes on the wire.
    pub const BYTES: usize = TRACE_ID + SPAN_ID + 1;

    pub(super) fn of(span: &SpanContext) -> Self {
        Self {
            trace_id: span.trace_id(),
            span_id: span.span_id(),
            flags: span.trace_flags(),
        }
    }

    /// Reads a round's header; none if it holds no context, or what cannot be one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (trace_id, rest) = bytes.split_first_chunk::<TRACE_ID>()?;
        let (span_id, rest) = rest.split_first_chunk::<SPAN_ID>()?;
        let &[flags] = rest else {
            return None;
        };
        let context = Self {
            trace_id: TraceId::from_bytes(*trace_id),
            span_id: SpanId::from_bytes(*span_id),
            flags: TraceFlags::new(flags) & TraceFlags::SAMPLED,
        };
        context.span_context().is_valid().then_some(context)
    }

    /// Writes a round's header.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..TRACE_ID].copy_from_slice(&self.trace_id.to_bytes());
        bytes[TRACE_ID..TRACE_ID + SPAN_ID].copy_from_slice(&self.span_id.to_bytes());
        bytes[TRACE_ID + SPAN_ID] = self.flags.to_u8();
        bytes
    }

    /// The trace, in hexadecimal.
    pub fn trace_id(self) -> String {
        self.trace_id.to_string()
    }

    /// The span, in hexadecimal.
    pub fn span_id(self) -> String {
        self.span_id.to_string()
    }

    pub(super) fn to_parent(self) -> Context {
        super::parent(self.span_context())
    }

    fn span_context(self) -> SpanContext {
        let remote = true;
        SpanContext::new(
            self.trace_id,
            self.span_id,
            self.flags,
            remote,
            TraceState::NONE,
        )
    }
}

/// The span that a client's metadata names; an empty context if it names none.
pub(super) fn of_client(metadata: &MetadataMap) -> Context {
    struct Headers<'a>(&'a MetadataMap);

    impl Extractor for Headers<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key)?.to_str().ok()
        }

        fn keys(&self) -> Vec<&str> {
            // The two that are looked for are asked for by name.
            Vec::new()
        }
    }

    TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(metadata))
}
