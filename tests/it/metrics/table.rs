//! The definitions, against what is exposed and what is written down.

use std::collections::BTreeSet;

use ops::metrics::{Metric, MetricKind, names};

use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft};

/// The type of `metric` in OpenMetrics, and what its samples' names add to its own.
pub(crate) fn in_openmetrics(metric: &Metric) -> (&'static str, &'static [&'static str]) {
    match metric.kind {
        MetricKind::Counter => ("counter", &["_total"]),
        MetricKind::Gauge => ("gauge", &[""]),
        MetricKind::Histogram(_) => ("histogram", &["_bucket", "_sum", "_count"]),
        MetricKind::Info => ("info", &["_info"]),
    }
}

/// The line of the table in `docs/reference/telemetry.md`.
fn row(metric: &Metric) -> String {
    let labels: Vec<String> = metric
        .labels
        .iter()
        .map(|label| format!("`{label}`"))
        .collect();
    let (kind, suffixes) = in_openmetrics(metric);
    // Where there are several, the table leaves them out.
    let suffix = if let [suffix] = suffixes { suffix } else { "" };
    format!(
        "| `{}{suffix}` | {kind} | {} | {} |",
        metric.name,
        labels.join(", "),
        metric.help
    )
}

#[test]
fn the_documented_table_is_that_of_the_definitions() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/telemetry.md"
    );
    let text = std::fs::read_to_string(path).expect("docs/reference/telemetry.md");
    let (_, section) = text
        .split_once("\n## Metrics\n")
        .expect("a section on metrics");
    let section = section.split("\n## ").next().expect("text");
    let is_row = |line: &&str| {
        ["| `outrider_", "| `gen_ai_", "| `process_"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let documented: Vec<&str> = section.lines().filter(is_row).collect();
    let defined: Vec<String> = names::ALL.iter().map(|metric| row(metric)).collect();
    for line in &defined {
        assert!(
            documented.contains(&line.as_str()),
            "not in docs/reference/telemetry.md:\n{line}"
        );
    }
    for line in &documented {
        assert!(
            defined.iter().any(|row| row == line),
            "no such metric:\n{line}"
        );
    }
    assert_eq!(documented.len(), defined.len(), "a line stands twice");
}

#[tokio::test]
async fn every_metric_is_exposed_by_some_process_and_nothing_else_is() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 30).ignoring_eos();
    generate(&cluster.coordinator, requested.clone()).await;
    let streamed = requested.with("schedule", "stream");
    generate(&cluster.coordinator, streamed.clone()).await;
    // What a drafter brings is known after some forwards with its drafts.
    let mut drafted = streamed.with("drafting", "model");
    drafted.max_tokens = Some(200);
    let is_known = || {
        let scrape = cluster.coordinator.scrape();
        scrape.families.contains_key(names::DRAFT_MODEL_GAIN.name)
    };
    while !is_known() {
        generate(&cluster.coordinator, drafted.clone()).await;
    }
    let mut exposed = BTreeSet::new();
    for service in [&cluster.coordinator, &cluster.drafter, &cluster.verifier] {
        let scrape = service.scrape();
        for (name, family) in &scrape.families {
            exposed.insert(name.clone());
            let metric = names::ALL.iter().find(|metric| metric.name == name);
            let metric = metric.unwrap_or_else(|| panic!("{name} is not defined"));
            assert_eq!(family.kind, in_openmetrics(metric).0, "{name}");
            assert_eq!(family.unit, metric.unit(), "{name}");
            assert_eq!(family.help, format!("{}.", metric.help), "{name}");
            let expected: BTreeSet<&str> = metric.labels.iter().copied().collect();
            let found = family.labels();
            let bounds = matches!(metric.kind, MetricKind::Histogram(_));
            assert_eq!(found.contains("le"), bounds, "{name}");
            let found: BTreeSet<&str> = found.into_iter().filter(|&label| label != "le").collect();
            assert_eq!(found, expected, "{name}");
        }
    }
    let defined: BTreeSet<String> = names::ALL
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    // These services have no certificate; `shared/ops/tests/security/expiry.rs` looks at one that has.
    exposed.insert(names::TLS_EXPIRY.name.to_owned());
    let never: Vec<_> = defined.difference(&exposed).collect();
    assert!(never.is_empty(), "defined and never exposed: {never:?}");
}
