//! A histogram that takes no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::gauge::Atomic;
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A histogram whose buckets are atomics: that of prometheus-client holds a mutex, and rounds of all requests
/// would meet there. Clones are the same histogram.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Upper bounds, without the infinite one.
    bounds: &'static [f64],
    /// Observations in each bucket, and beyond the last bound.
    counts: Box<[AtomicU64]>,
    /// Bits of the sum.
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self(Arc::new(Inner {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }))
    }

    /// Adds an observation.
    pub fn observe(&self, value: f64) {
        let bucket = self.0.bounds.partition_point(|&bound| bound < value);
        self.0.counts[bucket].fetch_add(1, Ordering::Relaxed);
        Atomic::<f64>::inc_by(&self.0.sum, value);
    }

    /// Adds a duration, in seconds.
    pub fn observe_duration(&self, value: Duration) {
        self.observe(value.as_secs_f64());
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        let counts = self.0.counts.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        // Counted from the same numbers, so that a scrape in the middle of an observation agrees with itself.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Atomic::<f64>::get(&self.0.sum);
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
