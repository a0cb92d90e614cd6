//! What can be asked for: the metrics of a process, what Prometheus adds, and what rules record.

use std::collections::{BTreeMap, BTreeSet};

use server::metrics::{Kind, Metric, names};

use super::expression::{Expression, Selector};

/// Labels that every target has.
const TARGET: [&str; 2] = ["job", "instance"];

/// Labels whose values the operator chooses.
const FREE: [&str; 4] = ["job", "instance", "model", "method"];

/// The metrics that can be asked for.
pub(super) struct Known {
    /// Their labels, and what defines them, unless it is a rule or Prometheus itself.
    by_name: BTreeMap<String, (BTreeSet<String>, Option<&'static Metric>)>,
}

impl Known {
    /// What processes expose, and `up`.
    pub(super) fn new() -> Self {
        let mut by_name = BTreeMap::new();
        by_name.insert("up".to_owned(), (TARGET.map(str::to_owned).into(), None));
        for &metric in names::ALL {
            for sample in metric.sample_names() {
                let mut labels: BTreeSet<String> = TARGET.map(str::to_owned).into();
                labels.extend(metric.labels.iter().map(|&label| label.to_owned()));
                if sample.ends_with("_bucket") {
                    labels.insert("le".to_owned());
                }
                by_name.insert(sample, (labels, Some(metric)));
            }
        }
        Self { by_name }
    }

    /// Adds what a rule records; its labels are those it sums by.
    pub(super) fn record(&mut self, name: &str, expression: &Expression) {
        let labels = expression.groups.clone();
        let before = self.by_name.insert(name.to_owned(), (labels, None));
        assert!(before.is_none(), "{name} is recorded twice");
    }

    /// Labels of what `expression` gives, or more than these: of a sum, those it sums by.
    pub(super) fn labels(&self, expression: &Expression) -> BTreeSet<String> {
        if expression.groups.is_empty() {
            self.selected(expression)
        } else {
            expression.groups.clone()
        }
    }

    /// What `expression` names that does not exist, a line each.
    pub(super) fn problems(&self, expression: &Expression) -> Vec<String> {
        let mut problems: Vec<String> = expression
            .selectors
            .iter()
            .flat_map(|selector| self.problems_of(selector))
            .collect();
        let selected = self.selected(expression);
        let unknown = expression.groups.difference(&selected);
        problems.extend(unknown.map(|label| format!("nothing here has the label {label}")));
        if expression.selectors.is_empty() {
            problems.push("asks for no metric".to_owned());
        }
        problems
    }

    fn selected(&self, expression: &Expression) -> BTreeSet<String> {
        let selectors = expression.selectors.iter();
        let known = selectors.filter_map(|selector| self.by_name.get(&selector.metric));
        known.flat_map(|(labels, _)| labels.clone()).collect()
    }

    fn problems_of(&self, Selector { metric, matchers }: &Selector) -> Vec<String> {
        let Some((labels, definition)) = self.by_name.get(metric) else {
            return vec![format!("there is no metric {metric}")];
        };
        let mut problems = Vec::new();
        for (label, values) in matchers {
            if !labels.contains(label) {
                problems.push(format!("{metric} has no label {label}"));
            } else if let Some(definition) = definition
                && !FREE.contains(&&**label)
            {
                let wrong = values
                    .iter()
                    .filter(|value| !can_be(definition, label, value));
                problems.extend(wrong.map(|value| format!("{metric} has no {label} {value}")));
            }
        }
        problems
    }
}

/// Whether a label can have the value: a bucket's bound is one of them, and the metric's help lists the values
/// of labels that have a few.
fn can_be(metric: &Metric, label: &str, value: &str) -> bool {
    if label == "le" {
        let (Kind::Histogram(bounds) | Kind::Traced(bounds)) = metric.kind else {
            return false;
        };
        return value
            .parse()
            .is_ok_and(|value: f64| bounds.contains(&value));
    }
    value.is_empty() || metric.help.contains(value)
}
