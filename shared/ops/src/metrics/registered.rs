//! Every metric there is, with its family of labelled figures.

use std::collections::HashMap;
use std::fs;

use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{self, Registry};

use super::samples::{Samples, Sources};
use super::{Counter, Labels, Metric, MetricKind, names};

type Histograms = Family<Labels, HistogramWithExemplars<Labels>, BucketBounds>;

/// Upper bounds of a new histogram's buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketBounds(&'static [f64]);

impl MetricConstructor<HistogramWithExemplars<Labels>> for BucketBounds {
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
                MetricKind::Counter => {
                    let family = Family::default();
                    add(registry, metric, Family::clone(&family));
                    registered.counters.insert(metric.name, family);
                }
                MetricKind::Histogram(bounds) => {
                    let family = Family::new_with_constructor(BucketBounds(bounds));
                    add(registry, metric, Family::clone(&family));
                    registered.histograms.insert(metric.name, family);
                }
                MetricKind::Info => add(
                    registry,
                    metric,
                    Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
                ),
                // Gauges are sampled.
                MetricKind::Gauge => {}
            }
        }
        registry.register_collector(Box::new(registered.sources.clone()));
        registered.sources.add(Box::new(|samples| {
            sample(samples);
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

/// Clock ticks a second in `/proc`: the same on every architecture that this program is built for.
const TICKS: f64 = 100.0;

/// The same for pages, whose size is not told there.
const KIB: f64 = 1024.0;

/// Looks it up; tells nothing where there is no `/proc`.
pub(super) fn sample(samples: &mut Samples) {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let times = times(&read("/proc/self/stat"));
    let booted = field(&read("/proc/stat"), "btime");
    let started = times.zip(booted);
    let status = read("/proc/self/status");
    let open = fs::read_dir("/proc/self/fd").ok();
    for (metric, figure) in [
        (&names::PROCESS_CPU, times.map(|(used, _)| used / TICKS)),
        (
            &names::PROCESS_START,
            started.map(|((_, tick), booted)| booted + tick / TICKS),
        ),
        (
            &names::PROCESS_RESIDENT,
            field(&status, "VmRSS:").map(|kib| kib * KIB),
        ),
        (&names::PROCESS_THREADS, field(&status, "Threads:")),
        (
            &names::PROCESS_OPEN_FDS,
            open.map(|files| files.count() as f64),
        ),
        (
            &names::PROCESS_MAX_FDS,
            field(&read("/proc/self/limits"), "Max open files"),
        ),
    ] {
        if let Some(figure) = figure {
            samples.add(metric, &[], figure);
        }
    }
}

/// Ticks of the processor used, and the tick of the start since the machine's own.
fn times(stat: &str) -> Option<(f64, f64)> {
    // The program's name stands in parentheses, and may hold anything.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    // Fields 14, 15 and 22 of proc(5); the first after the name is number 3.
    Some((ticks(11)? + ticks(12)?, ticks(19)?))
}

/// Returns the number after `name` at the begin of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_what_linux_writes() {
        let stat = "12 (a) b) R 1 12 12 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 777 1 2";
        assert_eq!(times(stat), Some((300.0, 777.0)));
        assert_eq!(times("12 (short) R 1"), None);
        let status = "Name:\tx\nVmRSS:\t   2048 kB\nThreads:\t7\n";
        assert_eq!(field(status, "VmRSS:"), Some(2048.0));
        let limits = "Max open files            1024                 4096   files\n";
        assert_eq!(field(limits, "Max open files"), Some(1024.0));
        assert_eq!(field("Max open files unlimited", "Max open files"), None);
    }
}
