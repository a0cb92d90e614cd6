//! A histogram whose buckets remember a trace each.

use std::time::{Duration, SystemTime};

use prometheus_client::metrics::exemplar::HistogramWithExemplars;

use super::definition::Labels;

/// A histogram. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Histogram(pub(super) HistogramWithExemplars<Labels>);

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
