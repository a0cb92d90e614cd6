//! Figures of a process, as Prometheus reads them.
//!
//! All metrics are defined in [`names`]; services take handles of them, once a service or once a request,
//! and count through those without a lookup. What is only worth knowing when somebody looks (sessions, memory,
//! queues) is not counted at all: sources registered with [`Metrics::sample`] say it at every scrape.

mod definition;
mod histogram;
pub mod names;
mod peer;
mod plain;
mod process;
mod registered;
mod samples;
mod vllm;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter;

pub use definition::{Kind, Metric};
pub use histogram::Histogram;
pub use peer::PeerMetrics;
pub use samples::Samples;

use registered::Registered;

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
            Self::Prometheus => plain::plain(&openmetrics),
        }
    }
}

/// The metrics of a process, shared by the services in it. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Registered>);

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Registered::new()))
    }
}

impl Metrics {
    /// The counter of `metric` with these values of its labels, in their order.
    ///
    /// # Panics
    /// If `metric` is not a counter of [`names`].
    pub fn counter(&self, metric: &Metric, labels: &[&str]) -> Counter {
        self.0.counters[metric.name].get_or_create_owned(&metric.labelled(labels))
    }

    /// The histogram of `metric` with these values of its labels.
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

#[cfg(test)]
mod tests;
