//! A span, or nothing.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, Value};

use super::{Attribute, TraceContext, Tracing};

/// A span under way, or nothing; it ends when it is dropped.
#[derive(Debug, Default)]
pub struct Span(Option<Box<Live>>);

#[derive(Debug)]
struct Live {
    span: opentelemetry_sdk::trace::Span,
    tracing: Arc<Tracing>,
    clock: Clock,
}

impl Span {
    pub(super) fn start_at(
        tracing: &Arc<Tracing>,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        parent: &Context,
        clock: Clock,
        began: Instant,
    ) -> Self {
        let builder = (tracing.tracer.span_builder(name))
            .with_kind(kind)
            .with_start_time(clock.at(began));
        let span = tracing.tracer.build_with_context(builder, parent);
        let live = span.is_recording().then(|| Live {
            span,
            tracing: Arc::clone(tracing),
            clock,
        });
        Self(live.map(Box::new))
    }

    /// Returns whether there is a span.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// Returns a span within this one that began at `began`, before now or in the very moment.
    #[must_use]
    pub fn child_at(
        &self,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        began: Instant,
    ) -> Self {
        let Some(live) = &self.0 else {
            return Self::default();
        };
        let parent = Context::new().with_remote_span_context(live.span.span_context().clone());
        Self::start_at(&live.tracing, name, kind, &parent, live.clock, began)
    }

    /// Returns what another service hangs its spans on.
    pub fn context(&self) -> Option<TraceContext> {
        let live = self.0.as_ref()?;
        Some(TraceContext::of(live.span.span_context()))
    }

    /// Gives it another name.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(live) = &mut self.0 {
            live.span.update_name(name);
        }
    }

    /// Says something of it.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(live) = &mut self.0 {
            live.span.set_attribute(Attribute::new(key, value));
        }
    }

    /// Says several things of it.
    pub fn set_all(&mut self, attributes: impl IntoIterator<Item = Attribute>) {
        if let Some(live) = &mut self.0 {
            live.span.set_attributes(attributes);
        }
    }

    /// Something happened in it at `at`.
    pub fn event_at(&mut self, name: &'static str, at: Instant, attributes: Vec<Attribute>) {
        if let Some(live) = &mut self.0 {
            let at = live.clock.at(at);
            live.span.add_event_with_timestamp(name, at, attributes);
        }
    }

    /// It failed.
    pub fn fail(&mut self, reason: impl Into<Cow<'static, str>>) {
        if let Some(live) = &mut self.0 {
            live.span.set_status(Status::error(reason));
        }
    }

    /// Ends it at `ended`, not at the moment it is dropped.
    pub fn end_at(mut self, ended: Instant) {
        if let Some(live) = &mut self.0 {
            let ended = live.clock.at(ended);
            live.span.end_with_timestamp(ended);
        }
    }
}

/// Tells the wall-clock time of moments near the one it was made at, so that spans of a request never
/// overlap because somebody set the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    wall: SystemTime,
    made: Instant,
}

impl Clock {
    pub(super) fn now() -> Self {
        Self {
            wall: SystemTime::now(),
            made: Instant::now(),
        }
    }

    /// Returns the wall-clock time at `moment`, which may lie before the clock was made.
    pub(super) fn at(&self, moment: Instant) -> SystemTime {
        match moment.checked_duration_since(self.made) {
            Some(after) => self.wall + after,
            None => self.wall - self.made.duration_since(moment),
        }
    }
}
