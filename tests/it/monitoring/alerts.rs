//! Prometheus's rules in `deploy/prometheus/alerts.yaml`, and the runbook they point at.

use std::collections::BTreeSet;
use std::fs;

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use super::expression::Expression;
use super::known::Known;
use super::{list, repository, text};

/// The rules of all groups.
fn rules() -> Vec<Value> {
    let content = fs::read_to_string(repository("deploy/prometheus/alerts.yaml"));
    let documents = Yaml::load_from_str(&content.expect("the file is there")).expect("YAML");
    let file = json(&documents[0]);
    let groups = list(&file["groups"]).iter();
    let rules: Vec<Value> = groups
        .flat_map(|group| list(&group["rules"]).to_vec())
        .collect();
    assert!(!rules.is_empty());
    rules
}

/// The same as JSON: texts, lists and maps, which is all that rules are made of.
fn json(node: &Yaml) -> Value {
    if let Some(sequence) = node.as_sequence() {
        sequence.iter().map(json).collect()
    } else if let Some(mapping) = node.as_mapping() {
        let key = |node: &Yaml| node.as_str().expect("a name").to_owned();
        mapping
            .iter()
            .map(|(name, value)| (key(name), json(value)))
            .collect()
    } else {
        node.as_str().into()
    }
}

/// What can be asked for, with what the rules record.
pub(super) fn known_with_rules() -> Known {
    let mut known = Known::new();
    for rule in rules() {
        if let Some(name) = rule["record"].as_str() {
            known.record(name, &Expression::read(text(&rule, "expr", name)));
        }
    }
    known
}

fn alerts() -> Vec<Value> {
    let mut alerts = rules();
    alerts.retain(|rule| !rule["alert"].is_null());
    alerts
}

#[test]
fn rules_ask_for_metrics_and_labels_that_exist() {
    let known = known_with_rules();
    let mut problems = Vec::new();
    for rule in rules() {
        let name = rule["alert"]
            .as_str()
            .or(rule["record"].as_str())
            .expect("a name");
        let expression = Expression::read(text(&rule, "expr", name));
        let found = known.problems(&expression);
        problems.extend(found.iter().map(|problem| format!("{name}: {problem}")));
        let labels = known.labels(&expression);
        for (_, annotation) in rule["annotations"].as_object().into_iter().flatten() {
            for piece in annotation
                .as_str()
                .expect("a text")
                .split("$labels.")
                .skip(1)
            {
                let label = piece.split(' ').next().unwrap_or_default();
                if !labels.contains(label) {
                    problems.push(format!("{name}: no {label} for its text"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_is_recorded_is_used() {
    let dashboards = repository("deploy/grafana/dashboards");
    let mut texts: Vec<String> = fs::read_dir(dashboards)
        .expect("the folder is there")
        .map(|file| fs::read_to_string(file.expect("a file").path()).expect("text"))
        .collect();
    texts.extend(
        alerts()
            .iter()
            .map(|alert| text(alert, "expr", "an alert").to_owned()),
    );
    for rule in rules() {
        if let Some(name) = rule["record"].as_str() {
            assert!(
                texts.iter().any(|text| text.contains(name)),
                "{name} is recorded for nobody"
            );
        }
    }
}

#[test]
fn every_alert_says_what_to_do() {
    let runbook = fs::read_to_string(repository("docs/operations.md")).expect("the runbook");
    let heading = |line: &str| {
        Some(
            line.strip_prefix('#')?
                .trim_start_matches('#')
                .trim()
                .to_lowercase(),
        )
    };
    let headings: BTreeSet<String> = runbook.lines().filter_map(heading).collect();
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let name = text(&alert, "alert", "an alert");
        assert!(
            name.starts_with("Outrider") && names.insert(name.to_owned()),
            "{name}"
        );
        let severity = text(&alert["labels"], "severity", name);
        assert!(
            ["critical", "warning"].contains(&severity),
            "{name}: {severity}"
        );
        text(&alert["annotations"], "summary", name);
        text(&alert["annotations"], "description", name);
        let anchor = name.to_lowercase();
        let runbook_url = text(&alert["annotations"], "runbook_url", name);
        assert_eq!(runbook_url, format!("docs/operations.md#{anchor}"));
        assert!(
            headings.contains(&anchor),
            "the runbook has no section {name}"
        );
    }
}
