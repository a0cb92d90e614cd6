//! Figures of a process, as Prometheus reads them.
//!
//! All metrics are defined in [`names`]; services take handles of them, once a service or once a request,
//! and count through those without a lookup. What is only worth knowing when somebody looks (sessions, memory,
//! queues) is not counted at all: sources registered with [`Metrics::sample`] say it at every scrape.

mod exposition;
pub mod names;
mod registered;
mod samples;
mod vllm;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::registry::Unit;
use smart_default::SmartDefault;
use tonic::{Code, Status};

pub use samples::Samples;

use registered::Registered;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Grows and shrinks.
    Gauge,
    /// Counts observations by size, up to these bounds and beyond.
    Histogram(&'static [f64]),
    /// Always 1; its labels tell what the process is.
    Info,
}

/// Base units that names end with; nothing else may end like them.
const UNITS: [&str; 4] = ["seconds", "bytes", "tokens", "sequences"];

/// A metric's definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name with its unit, without the suffix of its kind.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Its labels, in the order in which their values are given.
    pub labels: &'static [&'static str],
    /// One line, without the full stop.
    pub help: &'static str,
}

/// Labels with their values.
type Labels = Vec<(&'static str, String)>;

impl Metric {
    /// Returns the base unit that its name ends with; empty for what is just counted.
    pub fn unit(&self) -> &'static str {
        let end = self.name.rsplit('_').next().unwrap_or_default();
        if UNITS.contains(&end) { end } else { "" }
    }

    /// Returns the name without the unit, which the library appends, and the unit.
    fn parts(&self) -> (&'static str, Option<Unit>) {
        let unit = self.unit();
        match self.name.strip_suffix(unit) {
            Some(stem) if !unit.is_empty() => {
                let stem = stem.trim_end_matches('_');
                (stem, Some(Unit::Other(unit.to_owned())))
            }
            _ => (self.name, None),
        }
    }

    /// Its labels with `values`, in their order.
    fn labelled(&self, values: &[&str]) -> Labels {
        assert_eq!(
            self.labels.len(),
            values.len(),
            "{} takes a value for each of its labels",
            self.name
        );
        let values = values.iter().map(|&value| value.to_owned());
        self.labels.iter().copied().zip(values).collect()
    }
}

/// A figure that only grows, by amounts that need not be whole.
pub type Counter = counter::Counter<f64, AtomicU64>;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own, 0.0.4: without units and exemplars.
    Prometheus,
}

impl TextFormat {
    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// `openmetrics` in this format.
    pub fn rewrite(self, openmetrics: String) -> String {
        match self {
            Self::OpenMetrics => openmetrics,
            Self::Prometheus => exposition::plain(&openmetrics),
        }
    }
}

/// The metrics of a process, shared by the services in it. Clones are the same metrics.
#[derive(Clone, Debug, SmartDefault)]
pub struct Metrics(#[default(Arc::new(Registered::new()))] Arc<Registered>);

impl Metrics {
    /// Returns the counter of `metric` with these values of its labels, in their order.
    ///
    /// # Panics
    /// If `metric` is not a counter of [`names`].
    pub fn counter(&self, metric: &Metric, labels: &[&str]) -> Counter {
        self.0.counters[metric.name].get_or_create_owned(&metric.labelled(labels))
    }

    /// Returns the histogram of `metric` with these values of its labels.
    ///
    /// # Panics
    /// If `metric` is not a histogram of [`names`].
    pub fn histogram(&self, metric: &Metric, labels: &[&str]) -> Histogram {
        let family = &self.0.histograms[metric.name];
        Histogram(family.get_or_create_owned(&metric.labelled(labels)))
    }

    /// Has `source` asked at every scrape, until it answers `None`: what it looked at is gone.
    pub fn sample(&self, source: impl Fn(&mut Samples) -> Option<()> + Send + Sync + 'static) {
        self.0.sources.add(Box::new(source));
    }

    /// Writes all of them as OpenMetrics text, those that vLLM has too also under vLLM's names.
    ///
    /// # Errors
    /// If a source gave a value that cannot be written.
    pub fn encode_with_aliases(&self) -> Result<String, fmt::Error> {
        let mut text = self.encode()?;
        vllm::add(&mut text);
        Ok(text)
    }

    /// Writes all of them as OpenMetrics text.
    ///
    /// # Errors
    /// If a source gave what cannot be written.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

/// A histogram. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Histogram(HistogramWithExemplars<Labels>);

impl Histogram {
    /// Adds an observation.
    pub fn observe(&self, value: f64) {
        self.observe_traced(value, None);
    }

    /// Adds a duration, in seconds.
    pub fn observe_duration(&self, value: Duration) {
        self.observe(value.as_secs_f64());
    }

    /// Adds an observation of a request; its bucket remembers the latest that is traced.
    pub fn observe_traced(&self, value: f64, trace_id: Option<&str>) {
        let exemplar = trace_id.map(|id| vec![("trace_id", id.to_owned())]);
        let now = exemplar.is_some().then(SystemTime::now);
        self.0.observe(value, exemplar, now);
    }
}

/// How rounds end.
const OUTCOMES: [&str; 5] = ["answered", "overloaded", "late", "refused", "failed"];

/// What a drafter or verifier counts. Made once a service, so that counting takes no lookup.
#[derive(Clone, Debug)]
pub struct PeerMetrics {
    queue: Histogram,
    forward: Histogram,
    batch: Histogram,
    /// Rounds, in the order of [`OUTCOMES`].
    rounds: [Counter; OUTCOMES.len()],
}

impl PeerMetrics {
    /// Returns the figures of the service in this `role`: `drafter` or `verifier`.
    pub fn new(metrics: &Metrics, role: &'static str) -> Self {
        Self {
            queue: metrics.histogram(&names::QUEUE_DURATION, &[role]),
            forward: metrics.histogram(&names::FORWARD_DURATION, &[role]),
            batch: metrics.histogram(&names::ENGINE_BATCH, &[role]),
            rounds: OUTCOMES.map(|outcome| metrics.counter(&names::PEER_ROUNDS, &[role, outcome])),
        }
    }

    /// A task of the engine gave what was asked of it: it waited for `queue`, its forwards took `forward`, and
    /// there were `sequences` in the largest.
    pub fn computed(&self, queue: Duration, forward: Duration, sequences: usize) {
        self.queue.observe_duration(queue);
        self.forwarded(forward, sequences);
    }

    /// The same of a task's later steps, which wait for nothing.
    pub fn forwarded(&self, forward: Duration, sequences: usize) {
        self.forward.observe_duration(forward);
        self.batch.observe(sequences as f64);
    }

    /// A round ended.
    pub fn round(&self, answered: &Result<(), Status>) {
        let outcome = match answered.as_ref().map_err(Status::code) {
            Ok(()) => 0,
            Err(Code::ResourceExhausted) => 1,
            Err(Code::DeadlineExceeded) => 2,
            Err(
                Code::InvalidArgument
                | Code::OutOfRange
                | Code::FailedPrecondition
                | Code::Unimplemented,
            ) => 3,
            Err(_) => 4,
        };
        self.rounds[outcome].inc();
    }
}

#[cfg(test)]
mod tests;
