//! Every metric there is, with its family of labelled figures.

use std::collections::HashMap;

use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{self, Registry};

use super::Counter;
use super::definition::{Kind, Labels, Metric};
use super::names;
use super::process;
use super::samples::Sources;

type Histograms = Family<Labels, HistogramWithExemplars<Labels>, Bounds>;

/// Upper bounds of a new histogram's buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds(&'static [f64]);

impl MetricConstructor<HistogramWithExemplars<Labels>> for Bounds {
    fn new_metric(&self) -> HistogramWithExemplars<Labels> {
        HistogramWithExemplars::new(self.0.iter().copied())
    }
}

/// All metrics of [`names`], each registered once, whoever uses it.
#[derive(Debug, Default)]
pub(super) struct Registered {
    pub(super) registry: Registry,
    pub(super) sources: Sources,
    /// What is sampled only has an empty family, which is not written.
    pub(super) counters: HashMap<&'static str, Family<Labels, Counter>>,
    pub(super) histograms: HashMap<&'static str, Histograms>,
}

impl Registered {
    pub(super) fn new() -> Self {
        let mut registered = Self::default();
        let registry = &mut registered.registry;
        for metric in names::ALL {
            match metric.kind {
                Kind::Counter => {
                    let family = Family::default();
                    add(registry, metric, Family::clone(&family));
                    registered.counters.insert(metric.name, family);
                }
                Kind::Histogram(bounds) => {
                    let family = Family::new_with_constructor(Bounds(bounds));
                    add(registry, metric, Family::clone(&family));
                    registered.histograms.insert(metric.name, family);
                }
                Kind::Info => add(
                    registry,
                    metric,
                    Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
                ),
                // Gauges are sampled.
                Kind::Gauge => {}
            }
        }
        registry.register_collector(Box::new(registered.sources.clone()));
        registered.sources.add(Box::new(|samples| {
            process::sample(samples);
            Some(())
        }));
        registered
    }
}

fn add(registry: &mut Registry, metric: &Metric, figures: impl registry::Metric) {
    match metric.parts() {
        (stem, Some(unit)) => registry.register_with_unit(stem, metric.help, unit, figures),
        (name, None) => registry.register(name, metric.help, figures),
    }
}
