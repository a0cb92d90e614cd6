//! Figures of a process, as Prometheus reads them.
//!
//! All metrics are defined in [`names`]; services take handles of them, once a service or once a request,
//! and count through those without a lock. What is only worth knowing when somebody looks (sessions, memory,
//! queues) is not counted at all: sources registered with [`Metrics::sample`] say it at every scrape.

mod definition;
mod histogram;
mod labels;
pub mod names;
mod peer;
mod process_figures;
mod registered;
mod samples;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text;

pub use definition::{Kind, Metric};
pub use histogram::Histogram;
pub use peer::PeerMetrics;
pub use samples::Samples;

use registered::Registered;

/// A figure that only grows.
pub type Counter = prometheus_client::metrics::counter::Counter;

/// A sum of amounts that need not be whole.
pub type Sum = prometheus_client::metrics::counter::Counter<f64, std::sync::atomic::AtomicU64>;

/// A figure that grows and shrinks.
pub type Gauge = prometheus_client::metrics::gauge::Gauge;

/// What [`Metrics::encode`] writes, as HTTP names it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a process, shared by the services in it. Clones are the same metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Registered>);

impl Metrics {
    /// The counter of `metric` with these values of its labels, in their order.
    ///
    /// # Panics
    /// If `metric` is not a counter of [`names`]; so do its siblings for their kinds.
    pub fn counter(&self, metric: &Metric, labels: &[&str]) -> Counter {
        self.0.counter(metric, labels)
    }

    /// The sum of `metric` with these values of its labels.
    pub fn sum(&self, metric: &Metric, labels: &[&str]) -> Sum {
        self.0.sum(metric, labels)
    }

    /// The gauge of `metric` with these values of its labels.
    pub fn gauge(&self, metric: &Metric, labels: &[&str]) -> Gauge {
        self.0.gauge(metric, labels)
    }

    /// The histogram of `metric` with these values of its labels.
    pub fn histogram(&self, metric: &Metric, labels: &[&str]) -> Histogram {
        self.0.histogram(metric, labels)
    }

    /// Adds `value` to a histogram whose buckets remember a trace each: the latest traced request that fell
    /// into them. It takes a lock, so it is for what happens once a request.
    pub fn observe_traced(
        &self,
        metric: &Metric,
        labels: &[&str],
        value: f64,
        trace_id: Option<String>,
    ) {
        self.0.observe_traced(metric, labels, value, trace_id);
    }

    /// Has `source` asked at every scrape, until it answers `None`: what it looked at is gone.
    pub fn sample(&self, source: impl Fn(&mut Samples) -> Option<()> + Send + Sync + 'static) {
        self.0.sources.add(Box::new(source));
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

#[cfg(test)]
mod tests;
