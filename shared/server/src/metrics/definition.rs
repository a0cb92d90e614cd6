//! What a metric is, before anybody counts.

use prometheus_client::registry::Unit;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows, in whole numbers.
    Counter,
    /// Only grows; a counter of amounts that need not be whole.
    Sum,
    /// Grows and shrinks.
    Gauge,
    /// Counts observations by size, up to these bounds and beyond.
    Histogram(&'static [f64]),
    /// The same, each bucket with the trace of a request that fell into it.
    Traced(&'static [f64]),
    /// Always 1; its labels tell what the process is.
    Info,
}

/// A metric's definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name with its unit, without the suffix of its kind.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Base unit that the name ends with; empty for what is just counted.
    pub unit: &'static str,
    /// Its labels, in the order in which their values are given.
    pub labels: &'static [&'static str],
    /// One line, without the full stop.
    pub help: &'static str,
}

impl Metric {
    /// The name it is written and asked for under; a histogram's samples add `_bucket`, `_sum`, `_count`.
    pub fn exposed_name(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter | Kind::Sum => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram(_) | Kind::Traced(_) => "",
        };
        format!("{}{suffix}", self.name)
    }

    /// The names of its samples.
    pub fn sample_names(&self) -> Vec<String> {
        match self.kind {
            Kind::Histogram(_) | Kind::Traced(_) => ["_bucket", "_sum", "_count"]
                .map(|suffix| format!("{}{suffix}", self.name))
                .into(),
            _ => vec![self.exposed_name()],
        }
    }

    /// Its type in OpenMetrics.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter | Kind::Sum => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) | Kind::Traced(_) => "histogram",
            Kind::Info => "info",
        }
    }

    /// The name without the unit, which the library appends.
    pub(super) fn stem(&self) -> &'static str {
        let name = self.name;
        let stem = name.strip_suffix(self.unit).unwrap_or(name);
        stem.strip_suffix('_').unwrap_or(stem)
    }

    pub(super) fn unit(&self) -> Option<Unit> {
        let unit = self.unit.to_owned();
        (!unit.is_empty()).then_some(Unit::Other(unit))
    }
}
