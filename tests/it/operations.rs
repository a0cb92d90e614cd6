//! What the guide to operating promises is held by tests that exist, and each alert has its section.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let file = root().join(path);
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_failure_is_shown_by_a_test_that_exists() {
    let guide = read("docs/operations.md");
    let table = guide
        .split("## What happens when")
        .nth(1)
        .expect("the table");
    let rows = table.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let mut named = 0;
    for row in rows {
        let shown_by = row
            .trim_end_matches('|')
            .rsplit('|')
            .next()
            .expect("a cell");
        let mut file = None;
        let before = named;
        for name in quoted(shown_by) {
            if ["tests/network/run", "tests/network/soak"].contains(&name) {
                assert!(root().join(name).exists());
                named += 1;
            } else if Path::new(name).extension().is_some_and(|it| it == "rs") {
                let places = [name.to_owned(), format!("tests/it/{name}")];
                let place = places.into_iter().find(|place| root().join(place).exists());
                file = Some(read(&place.unwrap_or_else(|| panic!("no {name}"))));
            } else {
                let file = file.as_ref().unwrap_or_else(|| panic!("no file: {row}"));
                assert!(file.contains(&format!("fn {name}()")), "no test {name}");
                named += 1;
            }
        }
        assert!(named > before, "no test: {row}");
    }
    assert!(named > 25, "{named} tests in the table");
}

#[test]
fn each_alert_has_its_section_in_the_runbook() {
    let alerts = read("deploy/prometheus/alerts.yaml");
    let guide = read("docs/operations.md");
    let runbook = guide.split("## Runbook").nth(1).expect("a runbook");
    let sections: Vec<_> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let after = |key: &str| -> Vec<String> {
        let reported = alerts
            .lines()
            .filter_map(|line| line.trim().strip_prefix(key));
        reported.map(|value| value.trim().to_owned()).collect()
    };
    let names = after("- alert:");
    assert!(!names.is_empty());
    assert_eq!(sections, names, "in the order of the file");
    let urls = after("runbook_url:");
    let expected = names
        .iter()
        .map(|name| format!("docs/operations.md#{}", name.to_lowercase()));
    assert_eq!(urls, expected.collect::<Vec<_>>());
}
