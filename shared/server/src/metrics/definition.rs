//! What a metric is, before anybody counts.

use prometheus_client::registry::Unit;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
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
    pub kind: Kind,
    /// Its labels, in the order in which their values are given.
    pub labels: &'static [&'static str],
    /// One line, without the full stop.
    pub help: &'static str,
}

/// Labels with their values.
pub(super) type Labels = Vec<(&'static str, String)>;

impl Metric {
    /// The name it is written and asked for under; a histogram's samples add `_bucket`, `_sum`, `_count`.
    pub fn exposed_name(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram(_) => "",
        };
        format!("{}{suffix}", self.name)
    }

    /// The names of its samples.
    pub fn sample_names(&self) -> Vec<String> {
        match self.kind {
            Kind::Histogram(_) => ["_bucket", "_sum", "_count"]
                .map(|suffix| format!("{}{suffix}", self.name))
                .into(),
            _ => vec![self.exposed_name()],
        }
    }

    /// Its type in OpenMetrics.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
            Kind::Info => "info",
        }
    }

    /// The base unit that its name ends with; empty for what is just counted.
    pub fn unit(&self) -> &'static str {
        self.parts().1
    }

    /// The name without the unit, which the library appends, and the unit.
    pub(super) fn parts(&self) -> (&'static str, &'static str) {
        let parts = self.name.rsplit_once('_');
        parts
            .filter(|(_, unit)| UNITS.contains(unit))
            .unwrap_or((self.name, ""))
    }

    /// Its unit as the library has it.
    pub(super) fn declared_unit(&self) -> Option<Unit> {
        let unit = self.unit();
        (!unit.is_empty()).then(|| Unit::Other(unit.to_owned()))
    }

    /// Its labels with `values`, in their order.
    pub(super) fn labelled(&self, values: &[&str]) -> Labels {
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
