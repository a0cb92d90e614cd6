//! What a metric is, before anybody counts.

use prometheus_client::registry::Unit;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
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
    pub kind: MetricKind,
    /// Its labels, in the order in which their values are given.
    pub labels: &'static [&'static str],
    /// One line, without the full stop.
    pub help: &'static str,
}

/// Labels with their values.
pub(super) type Labels = Vec<(&'static str, String)>;

impl Metric {
    /// Returns the base unit that its name ends with; empty for what is just counted.
    pub fn unit(&self) -> &'static str {
        let end = self.name.rsplit('_').next().unwrap_or_default();
        if UNITS.contains(&end) { end } else { "" }
    }

    /// Returns the name without the unit, which the library appends, and the unit.
    pub(super) fn parts(&self) -> (&'static str, Option<Unit>) {
        let unit = self.unit();
        match self.name.strip_suffix(unit) {
            Some(stem) if !unit.is_empty() => {
                let stem = stem.trim_end_matches('_');
                (stem, Some(Unit::Other(unit.to_owned())))
            }
            _ => (self.name, None),
        }
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
