//! The configuration that the Helm chart makes, as the program reads it. The renders are kept in
//! tests/helm/golden, so that this needs no helm.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{outrider, succeeds, words};

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The text of each `outrider.json` in a render.
fn configurations(render: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in render.lines() {
        match line.strip_prefix("    ") {
            Some(rest) if is_inside => {
                let text = found.last_mut().expect("begun");
                text.push_str(rest);
                text.push('\n');
            }
            _ => is_inside = line == "  outrider.json: |",
        }
        if line == "  outrider.json: |" {
            found.push(String::new());
        }
    }
    found
}

#[test]
fn the_program_reads_every_configuration_that_the_chart_makes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.json");
    let path = file.to_str().expect("UTF-8");
    let renders =
        std::fs::read_dir(repository().join("tests/helm/golden")).expect("golden renders");
    let mut roles = BTreeSet::new();
    let mut read = 0;
    for render in renders {
        let render = render.expect("an entry").path();
        if render.extension().is_none_or(|kind| kind != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&render).expect("text");
        let configurations = configurations(&text);
        assert!(configurations.len() > 1, "{} has none", render.display());
        for configuration in configurations {
            let object: Map<String, Value> = serde_json::from_str(&configuration)
                .unwrap_or_else(|error| panic!("{}: {error} in {configuration}", render.display()));
            roles.extend(object.into_iter().map(|(key, _)| key));
            std::fs::write(&file, &configuration).expect("written");
            succeeds(&mut outrider(&["config", "print", "--config", path]));
            read += 1;
        }
    }
    assert!(read > 15, "{read} configurations");
    // The sections that depend on values are among them.
    for section in words("admin auth coordinator drafter insecure log telemetry tls verifier") {
        assert!(roles.contains(section), "no render has {section}");
    }
}

#[test]
fn the_charts_schema_has_that_of_the_program() {
    let schema = repository().join("helm/outrider/values.schema.json");
    let schema = std::fs::read_to_string(schema).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let (printed, _) = succeeds(&mut outrider(&["config", "schema"]));
    let mut printed: Map<String, Value> = serde_json::from_str(&printed).expect("JSON");
    printed.retain(|key, _| !["$schema", "title"].contains(&key.as_str()));
    assert!(
        schema["definitions"]["config"] == Value::Object(printed),
        "helm/outrider/values.schema.json has another schema of `config` than the program: \
         `outrider config schema | python3 tests/helm/values_schema.py` mends that"
    );
}
