//! A strict reader of OpenMetrics text: what the format forbids is a panic here.

use std::collections::{BTreeMap, BTreeSet};

/// What one scrape said.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(super) families: BTreeMap<String, Family>,
}

/// The samples under one name.
#[derive(Debug, Default)]
pub(super) struct Family {
    pub(super) help: String,
    pub(super) kind: String,
    pub(super) unit: String,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
    /// The exemplar's labels and value.
    exemplar: Option<(BTreeMap<String, String>, f64)>,
}

impl Scrape {
    pub(crate) fn read(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("# EOF at the end");
        assert!(!body.contains("# EOF"), "# EOF stands once");
        let mut scrape = Self::default();
        let mut current: Option<(String, Family)> = None;
        for line in body.lines() {
            assert!(!line.is_empty(), "no empty lines");
            if let Some(rest) = line.strip_prefix("# ") {
                let (keyword, rest) = rest.split_once(' ').expect("a keyword");
                let (name, text) = rest.split_once(' ').expect("a name");
                if current.as_ref().is_none_or(|(open, _)| open != name) {
                    scrape.close(current.take());
                    current = Some((name.to_owned(), Family::default()));
                }
                let (_, family) = current.as_mut().expect("just opened");
                assert!(
                    family.samples.is_empty(),
                    "{name}: described after its samples"
                );
                let field = match keyword {
                    "HELP" => &mut family.help,
                    "TYPE" => &mut family.kind,
                    "UNIT" => &mut family.unit,
                    other => panic!("unknown keyword {other}"),
                };
                assert!(field.is_empty(), "{name}: {keyword} stands twice");
                text.clone_into(field);
            } else {
                let (_, family) = current.as_mut().expect("a sample belongs to a family");
                family.samples.push(sample(line));
            }
        }
        scrape.close(current);
        scrape
    }

    fn close(&mut self, family: Option<(String, Family)>) {
        if let Some((name, family)) = family {
            family.check(&name);
            let before = self.families.insert(name.clone(), family);
            assert!(before.is_none(), "{name} stands twice");
        }
    }

    /// The value of the sample `name` with exactly these labels; none if it is not there.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut samples = self.families.values().flat_map(|family| &family.samples);
        let sample = samples.find(|sample| {
            let same = |&(key, value): &(&str, &str)| {
                sample.labels.get(key).is_some_and(|found| found == value)
            };
            sample.name == name && sample.labels.len() == labels.len() && labels.iter().all(same)
        });
        sample.map(|sample| sample.value)
    }

    /// The same of a sample that is there.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found = self.find(name, labels);
        found.unwrap_or_else(|| panic!("no {name} {labels:?} in {:#?}", self.names()))
    }

    /// The sum of the samples `name` that have these labels among others.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.families.values().flat_map(|family| &family.samples);
        let wanted = samples.filter(|sample| {
            let has = |&(key, value): &(&str, &str)| {
                sample.labels.get(key).is_some_and(|found| found == value)
            };
            sample.name == name && labels.iter().all(has)
        });
        wanted.map(|sample| sample.value).sum()
    }

    /// All values that the label `key` has anywhere.
    pub(crate) fn label_values(&self, key: &str) -> BTreeSet<String> {
        let samples = self.families.values().flat_map(|family| &family.samples);
        samples
            .filter_map(|sample| sample.labels.get(key).cloned())
            .collect()
    }

    /// The traces that exemplars of the histogram `family` name, with their values.
    pub(crate) fn exemplars(&self, family: &str) -> Vec<(String, f64)> {
        let exemplars = self.families[family]
            .samples
            .iter()
            .filter_map(|sample| sample.exemplar.as_ref());
        exemplars
            .map(|(labels, value)| (labels["trace_id"].clone(), *value))
            .collect()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.families.keys().map(String::as_str).collect()
    }
}

impl Family {
    /// The labels that some sample has.
    pub(crate) fn labels(&self) -> BTreeSet<&str> {
        let labels = self.samples.iter().flat_map(|sample| sample.labels.keys());
        labels.map(String::as_str).collect()
    }

    fn check(&self, name: &str) {
        assert!(is_name(name), "{name:?}");
        assert!(!self.help.is_empty(), "{name} has no help");
        assert!(
            self.unit.is_empty() || name.ends_with(&format!("_{}", self.unit)),
            "{name} must end with its unit, {}",
            self.unit
        );
        let suffixes: &[&str] = match self.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("{name} is of unknown type {other:?}"),
        };
        let mut seen = BTreeSet::new();
        for sample in &self.samples {
            let suffix = sample.name.strip_prefix(name);
            assert!(
                suffix.is_some_and(|suffix| suffixes.contains(&suffix)),
                "{} is no sample of the {} {name}",
                sample.name,
                self.kind
            );
            assert!(
                seen.insert((&sample.name, &sample.labels)),
                "{sample:?} stands twice"
            );
            let may_trace = sample.name.ends_with("_bucket") || sample.name.ends_with("_total");
            assert!(sample.exemplar.is_none() || may_trace, "{sample:?}");
            assert!(self.kind == "gauge" || sample.value >= 0.0, "{sample:?}");
        }
        assert!(!self.samples.is_empty(), "{name} has no samples");
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    first && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// `name{labels} value`, perhaps with ` # {labels} value timestamp`.
fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).expect("a name");
    let (name, rest) = line.split_at(end);
    let (labels, rest) = labels(rest);
    let rest = rest.strip_prefix(' ').expect("a space before the value");
    let (value, exemplar) = match rest.split_once(" # ") {
        None => (rest, None),
        Some((value, exemplar)) => (value, Some(exemplar)),
    };
    let exemplar = exemplar.map(|text| {
        let (labels, rest) = labels_of_exemplar(text);
        let mut numbers = rest.trim_start().split(' ');
        let value = number(numbers.next().expect("an exemplar's value"));
        let time = number(numbers.next().expect("an exemplar's time"));
        assert!(time > 1.6e9 && numbers.next().is_none(), "{line}");
        (labels, value)
    });
    Sample {
        name: name.to_owned(),
        labels,
        value: number(value),
        exemplar,
    }
}

fn labels_of_exemplar(text: &str) -> (BTreeMap<String, String>, &str) {
    let (labels, rest) = labels(text);
    let len: usize = labels
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    assert!(!labels.is_empty() && len <= 128, "{text}");
    (labels, rest)
}

/// The labels that `text` begins with, if any, and what comes after them. No value here holds what parts them; that
/// such are escaped is tested in `server`.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    let Some(inside) = text.strip_prefix('{') else {
        return (labels, text);
    };
    let (inside, rest) = inside.split_once('}').expect("the end of the labels");
    for label in inside.split(',').filter(|label| !label.is_empty()) {
        let (key, value) = label.split_once("=\"").expect("a label");
        let value = value.strip_suffix('"').expect("the end of its value");
        assert!(is_name(key), "{key:?}");
        let before = labels.insert(key.to_owned(), value.to_owned());
        assert!(before.is_none(), "{key} stands twice");
    }
    (labels, rest)
}

fn number(text: &str) -> f64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}
