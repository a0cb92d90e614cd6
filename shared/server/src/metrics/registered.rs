//! Every metric there is, with its family of labelled figures.

use std::collections::HashMap;

use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::definition::{Kind, Metric};
use super::labels::{Labels, labelled};
use super::names;
use super::process_figures;
use super::samples::Sources;
use super::{Counter, Gauge, Histogram, Sum};

/// A histogram with a trace in each bucket.
type Traced = HistogramWithExemplars<Labels>;

/// All metrics of [`names`], each registered once, whoever uses it.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) registry: Registry,
    pub(super) sources: Sources,
    families: HashMap<&'static str, AnyFamily>,
}

#[derive(Debug)]
enum AnyFamily {
    Counter(Family<Labels, Counter>),
    Sum(Family<Labels, Sum>),
    Gauge(Family<Labels, Gauge>),
    Histogram(Family<Labels, Histogram, Buckets>),
    Traced(Family<Labels, Traced, Buckets>),
}

/// Upper bounds of a new histogram's buckets.
#[derive(Clone, Copy, Debug)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0)
    }
}

impl MetricConstructor<Traced> for Buckets {
    fn new_metric(&self) -> Traced {
        Traced::new(self.0.iter().copied())
    }
}

impl Default for Registered {
    fn default() -> Self {
        let mut registered = Self {
            registry: Registry::default(),
            sources: Sources::default(),
            families: HashMap::new(),
        };
        for metric in names::ALL {
            registered.register(metric);
        }
        let sources = registered.sources.clone();
        registered.registry.register_collector(Box::new(sources));
        registered.sources.add(Box::new(|samples| {
            process_figures::sample(samples);
            Some(())
        }));
        registered
    }
}

impl Registered {
    fn register(&mut self, metric: &'static Metric) {
        let family = match metric.kind {
            // What is sampled only has an empty family, which is not written.
            Kind::Counter => AnyFamily::Counter(Family::default()),
            Kind::Sum => AnyFamily::Sum(Family::default()),
            Kind::Gauge => AnyFamily::Gauge(Family::default()),
            Kind::Histogram(bounds) => {
                AnyFamily::Histogram(Family::new_with_constructor(Buckets(bounds)))
            }
            Kind::Traced(bounds) => {
                AnyFamily::Traced(Family::new_with_constructor(Buckets(bounds)))
            }
            Kind::Info => {
                let version = vec![("version", env!("CARGO_PKG_VERSION"))];
                let registry = &mut self.registry;
                return registry.register(metric.stem(), metric.help, Info::new(version));
            }
        };
        match &family {
            AnyFamily::Counter(family) => add(&mut self.registry, metric, family.clone()),
            AnyFamily::Sum(family) => add(&mut self.registry, metric, family.clone()),
            AnyFamily::Gauge(family) => add(&mut self.registry, metric, family.clone()),
            AnyFamily::Histogram(family) => add(&mut self.registry, metric, family.clone()),
            AnyFamily::Traced(family) => add(&mut self.registry, metric, family.clone()),
        }
        self.families.insert(metric.name, family);
    }

    pub(super) fn counter(&self, metric: &Metric, labels: &[&str]) -> Counter {
        match self.families.get(metric.name) {
            Some(AnyFamily::Counter(family)) => {
                family.get_or_create_owned(&labelled(metric, labels))
            }
            _ => panic!("{} is no counter", metric.name),
        }
    }

    pub(super) fn sum(&self, metric: &Metric, labels: &[&str]) -> Sum {
        match self.families.get(metric.name) {
            Some(AnyFamily::Sum(family)) => family.get_or_create_owned(&labelled(metric, labels)),
            _ => panic!("{} is no sum", metric.name),
        }
    }

    pub(super) fn gauge(&self, metric: &Metric, labels: &[&str]) -> Gauge {
        match self.families.get(metric.name) {
            Some(AnyFamily::Gauge(family)) => family.get_or_create_owned(&labelled(metric, labels)),
            _ => panic!("{} is no gauge", metric.name),
        }
    }

    pub(super) fn histogram(&self, metric: &Metric, labels: &[&str]) -> Histogram {
        match self.families.get(metric.name) {
            Some(AnyFamily::Histogram(family)) => {
                family.get_or_create_owned(&labelled(metric, labels))
            }
            _ => panic!("{} is no histogram", metric.name),
        }
    }

    pub(super) fn observe_traced(
        &self,
        metric: &Metric,
        labels: &[&str],
        value: f64,
        trace_id: Option<String>,
    ) {
        let Some(AnyFamily::Traced(family)) = self.families.get(metric.name) else {
            panic!("{} is no histogram with traces", metric.name);
        };
        let now = trace_id.is_some().then(std::time::SystemTime::now);
        let exemplar = trace_id.map(|id| vec![("trace_id", id)]);
        family
            .get_or_create(&labelled(metric, labels))
            .observe(value, exemplar, now);
    }
}

fn add(registry: &mut Registry, metric: &Metric, family: impl prometheus_client::registry::Metric) {
    match metric.unit() {
        Some(unit) => registry.register_with_unit(metric.stem(), metric.help, unit, family),
        None => registry.register(metric.stem(), metric.help, family),
    }
}
