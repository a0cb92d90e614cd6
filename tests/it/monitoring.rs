//! What watches the system asks for what the system tells: dashboards and alerts against the list of metrics.
//!
//! Whether each expression is valid PromQL, fires when it should and finds data in a running system is what
//! `tests/monitoring/run` asks of Prometheus itself; here words are looked up.

mod panels;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ops::metrics::{Metric, MetricKind, names};
use serde_json::Value;

use crate::metrics::in_openmetrics;

/// Labels that every target has.
const TARGET: [&str; 2] = ["job", "instance"];

/// Labels whose values the operator chooses.
const FREE: [&str; 4] = ["job", "instance", "model", "method"];

/// What else stands in our expressions: PromQL's own words, and the metric that Prometheus itself adds.
const LANGUAGE: &str =
    "and by changes count histogram_quantile increase max min on or rate sum time up";

/// A file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A text that must be there.
fn text<'v>(value: &'v Value, key: &str, whose: &str) -> &'v str {
    let text = value[key].as_str().unwrap_or_default();
    assert!(!text.is_empty(), "{whose} has no {key}");
    text
}

/// The elements of a list; none if it is not one.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An alert or a recording rule: its name, and the lines that define it.
struct Rule {
    name: String,
    lines: Vec<String>,
}

impl Rule {
    /// What stands behind `key: ` in one line, if it is there.
    fn value(&self, key: &str) -> Option<&str> {
        let mut lines = self.lines.iter();
        lines.find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "))
    }

    /// Its expression, in one line or several.
    fn expression(&self) -> String {
        let at = self
            .lines
            .iter()
            .position(|line| line.trim().starts_with("expr: "));
        let lines = &self.lines[at.unwrap_or_else(|| panic!("{} has no expr", self.name))..];
        let depth = |line: &str| line.len() - line.trim_start().len();
        let more = lines[1..]
            .iter()
            .take_while(|line| depth(line) > depth(&lines[0]));
        let first = lines[0]
            .trim()
            .trim_start_matches("expr: ")
            .trim_matches('|');
        more.fold(first.to_owned(), |text, line| {
            format!("{text} {}", line.trim())
        })
    }
}

/// The rules of `deploy/prometheus/alerts.yaml`, of alerts or of records.
fn rules(kind: &str) -> Vec<Rule> {
    let file = fs::read_to_string(repository("deploy/prometheus/alerts.yaml")).expect("the rules");
    let mut rules: Vec<(bool, Rule)> = Vec::new();
    for line in file
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        if let Some((of, name)) = line
            .trim()
            .strip_prefix("- ")
            .and_then(|line| line.split_once(": "))
        {
            let (name, lines) = (name.to_owned(), Vec::new());
            rules.push((of == kind, Rule { name, lines }));
        } else if let Some((_, rule)) = rules.last_mut() {
            rule.lines.push(line.to_owned());
        }
    }
    let rules: Vec<Rule> = rules
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, rule)| rule)
        .collect();
    assert!(!rules.is_empty(), "no {kind}");
    rules
}

/// Names and contents of all dashboards.
fn dashboards() -> Vec<(String, Value)> {
    let files = fs::read_dir(repository("deploy/grafana/dashboards")).expect("the folder is there");
    let dashboards: Vec<_> = files
        .map(|file| {
            let file = file.expect("a file");
            let content = fs::read(file.path()).expect("a file that can be read");
            let name = file.file_name().to_string_lossy().into_owned();
            (name, serde_json::from_slice(&content).expect("JSON"))
        })
        .collect();
    assert_eq!(
        dashboards.len(),
        3,
        "service levels, speculation, infrastructure"
    );
    dashboards
}

/// The panels that show something, without the headings of rows.
fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    let panels = list(&dashboard["panels"]).iter();
    panels.filter(|panel| panel["type"] != "row")
}

/// Every expression of rules and dashboards, with whose it is.
fn expressions() -> Vec<(String, String)> {
    let rules = [rules("alert"), rules("record")].into_iter().flatten();
    let mut all: Vec<_> = rules
        .map(|rule| (rule.name.clone(), rule.expression()))
        .collect();
    for (file, dashboard) in dashboards() {
        for panel in panels(&dashboard) {
            let title = text(panel, "title", &file);
            assert!(!list(&panel["targets"]).is_empty(), "{title} asks nothing");
            for target in list(&panel["targets"]) {
                // A legend names labels, and nothing that was not asked for.
                let requested = text(target, "expr", title);
                let legend = text(target, "legendFormat", title).split("{{").skip(1);
                let labels = legend.filter_map(|piece| piece.split_once("}}"));
                let labels: Vec<&str> = labels.map(|(label, _)| label.trim()).collect();
                let is_asked =
                    |label: &&str| !requested.contains(" by (") || requested.contains(*label);
                assert!(
                    labels.iter().all(is_asked),
                    "{title}: {labels:?} are summed away"
                );
                all.push((
                    format!("{file}, {title}"),
                    format!("{requested} by ({})", labels.join(", ")),
                ));
            }
        }
        for variable in list(&dashboard["templating"]["list"]) {
            let query = variable["query"]["query"].as_str().unwrap_or_default();
            if let Some(requested) = query.strip_prefix("label_values(") {
                all.push((format!("{file}, {query}"), requested.to_owned()));
            }
        }
    }
    all
}

/// The labels of a sample, and what defines it, unless it is a rule or Prometheus itself.
type Known = BTreeMap<String, (BTreeSet<String>, Option<&'static Metric>)>;

/// What can be asked for: what processes expose, `up`, and what rules record, whose labels are those that its
/// expression names.
fn known() -> Known {
    let all = |labels: &[&str]| -> BTreeSet<String> {
        let labels = labels.iter().chain(&TARGET);
        labels.map(|&label| label.to_owned()).collect()
    };
    let samples = names::ALL.iter().flat_map(|&metric| {
        let (_, suffixes) = in_openmetrics(metric);
        suffixes.iter().map(move |suffix| {
            let sample = format!("{}{suffix}", metric.name);
            let mut labels = all(metric.labels);
            if sample.ends_with("_bucket") {
                labels.insert("le".to_owned());
            }
            (sample, (labels, Some(metric)))
        })
    });
    let mut known: Known = samples.collect();
    known.insert("up".to_owned(), (all(&[]), None));
    for rule in rules("record") {
        let expression = rule.expression();
        let labels = words(&expression).map(str::to_owned).collect();
        known.insert(rule.name, (labels, None));
    }
    known
}

/// The names in code: ranges, numbers with their units, and Grafana's variables are none.
fn words(code: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "_:$.".contains(c);
    let words = code.split(move |c| !is_inside(c));
    words.filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))
}

/// Whether a label can have the value: a bucket's bound is one of them, and a metric's help lists the values of
/// labels that have a few.
fn can_be(metric: &Metric, label: &str, value: &str) -> bool {
    match metric.kind {
        MetricKind::Histogram(bounds) if label == "le" => value
            .parse()
            .is_ok_and(|value: f64| bounds.contains(&value)),
        _ => label != "le" && (value.is_empty() || metric.help.contains(value)),
    }
}

/// What `expression` names that does not exist.
fn problems(known: &Known, expression: &str) -> Vec<String> {
    let mut problems = Vec::new();
    // Strings are every second piece; what they are compared with stands before them.
    let pieces: Vec<&str> = expression.split('"').collect();
    let code = || pieces.iter().step_by(2).flat_map(|code| words(code));
    let requested: Vec<_> = code().filter_map(|word| known.get(word)).collect();
    let labels: BTreeSet<&String> = requested.iter().flat_map(|(labels, _)| labels).collect();
    let is_word = |word: &str| LANGUAGE.split(' ').any(|other| other == word);
    let unknown = code().filter(|word| {
        !known.contains_key(*word) && !is_word(word) && !labels.contains(&(*word).to_owned())
    });
    problems.extend(unknown.map(|word| format!("nothing asked for here is called {word}")));
    if requested.is_empty() {
        problems.push("asks for no metric".to_owned());
    }
    let mut metric = "";
    for compared in pieces.windows(2).step_by(2) {
        if let Some((before, _)) = compared[0].rsplit_once('{') {
            metric = words(before).last().unwrap_or_default();
        }
        let label = compared[0].trim_end_matches(['=', '!', '~']);
        let label = label.rsplit(['{', ',', ' ']).next().unwrap_or_default();
        let Some((labels, definition)) = known.get(metric) else {
            problems.push(format!("there is no metric {metric}"));
            continue;
        };
        if !labels.contains(label) {
            problems.push(format!("{metric} has no label {label}"));
        } else if let Some(definition) = definition
            && !FREE.contains(&label)
        {
            let values = compared[1].split('|');
            let wrong = values.filter(|value| !can_be(definition, label, value));
            problems.extend(wrong.map(|value| format!("{metric} has no {label} {value}")));
        }
    }
    problems
}

#[test]
fn rules_and_panels_ask_for_metrics_labels_and_values_that_exist() {
    let known = known();
    let all = expressions().into_iter().flat_map(|(whose, expression)| {
        let problems = problems(&known, &expression).into_iter();
        problems.map(move |problem| format!("{whose}: {problem}"))
    });
    let all: Vec<String> = all.collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn what_does_not_exist_is_found() {
    for row in [
        "sum by (role) (outrider_no_such_total) -> outrider_no_such_total",
        r#"outrider_ready{role="x"} -> outrider_ready has no label role"#,
        r#"outrider_peers{state="asleep"} -> outrider_peers has no state asleep"#,
        r#"sum by (le) (outrider_accepted_length_tokens_bucket{le="3.5"}) -> no le 3.5"#,
        "sum by (service) (outrider_peers) -> called service",
        "1 > 0 -> asks for no metric",
    ] {
        let (expression, expected) = row.split_once(" -> ").expect("two parts");
        let found = problems(&known(), expression).join(", ");
        assert!(found.contains(expected), "{expression}: {found}");
    }
}

#[test]
fn what_is_recorded_is_used() {
    let requested = expressions();
    for Rule { name, .. } in rules("record") {
        let mut others = requested.iter().filter(|(whose, _)| *whose != name);
        assert!(
            others.any(|(_, text)| text.contains(&name)),
            "{name} is recorded for nobody"
        );
    }
}

/// That each has its section in the runbook is held by `operations.rs`.
#[test]
fn every_alert_says_how_bad_it_is_and_what_it_means() {
    let mut names = BTreeSet::new();
    for alert in rules("alert") {
        let name = &alert.name;
        assert!(
            name.starts_with("Outrider") && names.insert(name.clone()),
            "{name}"
        );
        let severity = alert.value("severity");
        assert!(
            matches!(severity, Some("critical" | "warning")),
            "{name}: {severity:?}"
        );
        let [summary, meaning] =
            ["summary", "description"].map(|key| alert.value(key).unwrap_or_default());
        assert!(!summary.is_empty() && !meaning.is_empty(), "{name}");
    }
}
