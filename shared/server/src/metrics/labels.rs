//! The labels of a figure.

use super::definition::Metric;

/// Labels with their values.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The labels of `metric` with `values`, in their order.
pub(super) fn labelled(metric: &Metric, values: &[&str]) -> Labels {
    assert_eq!(
        metric.labels.len(),
        values.len(),
        "{} takes a value for each of its labels",
        metric.name
    );
    let values = values.iter().map(|&value| value.to_owned());
    metric.labels.iter().copied().zip(values).collect()
}
