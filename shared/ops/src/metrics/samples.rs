//! Figures that are looked up when somebody asks for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::{Labels, Metric, MetricKind};

/// Looks something up, or says that it is gone.
type Source = Box<dyn Fn(&mut Samples) -> Option<()> + Send + Sync>;

/// What sources say at one scrape.
#[derive(Debug, Default)]
pub struct Samples(BTreeMap<&'static str, (&'static Metric, BTreeMap<Labels, f64>)>);

impl Samples {
    /// Adds `value` to a counter or gauge. Sources that speak of the same labels are summed: of two verifiers
    /// in a process the sessions of both are told.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        let (_, family) = self
            .0
            .entry(metric.name)
            .or_insert_with(|| (metric, BTreeMap::new()));
        *family.entry(metric.labelled(labels)).or_default() += value;
    }

    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (metric, family) in self.0.values() {
            let (stem, unit) = metric.parts();
            let help = format!("{}.", metric.help);
            let is_counter = metric.kind == MetricKind::Counter;
            let kind = if is_counter {
                MetricType::Counter
            } else {
                MetricType::Gauge
            };
            let mut of_metric = encoder.encode_descriptor(stem, &help, unit.as_ref(), kind)?;
            for (labels, value) in family {
                let mut sample = of_metric.encode_family(labels)?;
                if is_counter {
                    sample.encode_counter::<NoLabelSet, _, f64>(value, None)?;
                } else {
                    sample.encode_gauge(value)?;
                }
            }
        }
        Ok(())
    }
}

/// Whoever is asked at every scrape.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Sources")]
pub(super) struct Sources(Arc<Mutex<Vec<Source>>>);

impl Sources {
    pub(super) fn add(&self, source: Source) {
        self.0.lock().push(source);
    }

    fn samples(&self) -> Samples {
        let mut samples = Samples::default();
        let mut sources = self.0.lock();
        sources.retain(|source| source(&mut samples).is_some());
        samples
    }
}

impl Collector for Sources {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        self.samples().encode(encoder)
    }
}
