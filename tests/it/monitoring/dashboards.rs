//! Grafana's dashboards in `deploy/grafana/dashboards`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::alerts::known_with_rules;
use super::expression::Expression;
use super::{list, repository, text};

/// Names and contents of all dashboards.
fn dashboards() -> Vec<(String, Value)> {
    let folder = repository("deploy/grafana/dashboards");
    let files = fs::read_dir(folder).expect("the folder is there");
    let read = |path: std::path::PathBuf| {
        let content = fs::read(&path).expect("a file that can be read");
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        (name, serde_json::from_slice(&content).expect("JSON"))
    };
    let dashboards: Vec<_> = files
        .map(|file| read(file.expect("a file").path()))
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

/// Labels in a legend: `{{label}}`.
fn legend_labels(legend: &str) -> BTreeSet<String> {
    let pieces = legend.split("{{").skip(1);
    let labels = pieces.filter_map(|piece| piece.split_once("}}"));
    labels.map(|(label, _)| label.trim().to_owned()).collect()
}

#[test]
fn panels_ask_for_metrics_and_labels_that_exist() {
    let known = known_with_rules();
    let mut problems = Vec::new();
    for (file, dashboard) in dashboards() {
        for panel in panels(&dashboard) {
            let title = text(panel, "title", &file);
            assert!(!list(&panel["targets"]).is_empty(), "{title} asks nothing");
            for target in list(&panel["targets"]) {
                let expression = Expression::read(text(target, "expr", title));
                let found = known.problems(&expression);
                problems.extend(
                    found
                        .iter()
                        .map(|problem| format!("{file}, {title}: {problem}")),
                );
                let legend = legend_labels(text(target, "legendFormat", title));
                let labels = known.labels(&expression);
                let missing = legend.difference(&labels);
                problems.extend(
                    missing.map(|label| format!("{file}, {title}: no {label} for the legend")),
                );
            }
        }
        for variable in list(&dashboard["templating"]["list"]) {
            let query = variable["query"]["query"].as_str().unwrap_or_default();
            let Some(asked) = query.strip_prefix("label_values(") else {
                continue;
            };
            let (metric, label) = asked
                .trim_end_matches(')')
                .rsplit_once(", ")
                .expect("two arguments");
            let expression = Expression::read(metric);
            let found = known.problems(&expression);
            problems.extend(
                found
                    .iter()
                    .map(|problem| format!("{file}, {query}: {problem}")),
            );
            if !known.labels(&expression).contains(label) {
                problems.push(format!("{file}, {query}: no label {label}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn panels_say_what_they_show_and_in_which_unit() {
    let mut uids = BTreeSet::new();
    for (file, dashboard) in dashboards() {
        assert!(
            uids.insert(text(&dashboard, "uid", &file).to_owned()),
            "{file}: a uid twice"
        );
        text(&dashboard, "description", &file);
        let mut ids = BTreeSet::new();
        for panel in panels(&dashboard) {
            let title = text(panel, "title", &file);
            assert!(
                ids.insert(panel["id"].as_u64()),
                "{file}, {title}: an id twice"
            );
            text(panel, "description", title);
            text(&panel["fieldConfig"]["defaults"], "unit", title);
            let targets = list(&panel["targets"]).iter();
            let named: BTreeSet<&str> =
                targets.map(|target| text(target, "refId", title)).collect();
            assert_eq!(
                named.len(),
                list(&panel["targets"]).len(),
                "{file}, {title}: a refId twice"
            );
            for source in list(&panel["targets"]).iter().chain([panel]) {
                let uid = &source["datasource"]["uid"];
                assert_eq!(
                    uid, "${datasource}",
                    "{file}, {title}: bound to one installation"
                );
            }
        }
    }
}

#[test]
fn panels_stand_side_by_side() {
    for (file, dashboard) in dashboards() {
        let mut taken = BTreeSet::new();
        for panel in list(&dashboard["panels"]) {
            let at = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
            let (x, y, width, height) = (at("x"), at("y"), at("w"), at("h"));
            let title = text(panel, "title", &file);
            assert!(x + width <= 24, "{file}: {title} is out of the grid");
            for cell in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{file}: {title} covers another panel");
            }
        }
    }
}
