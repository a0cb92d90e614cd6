//! The configuration that the Helm chart makes, as the program reads it. The renders are kept in
//! tests/helm/golden, so that this needs no helm.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{fails, outrider, says, succeeds, words};

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The role and the text of each `outrider.json` in a render.
fn configurations(render: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let (mut is_inside, mut role) = (false, "");
    for line in render.lines() {
        let label = line.trim().strip_prefix("app.kubernetes.io/component: ");
        role = label.unwrap_or(role);
        match line.strip_prefix("    ") {
            Some(rest) if is_inside => {
                let (_, text) = found.last_mut().expect("begun");
                text.push_str(rest);
                text.push('\n');
            }
            _ => is_inside = line == "  outrider.json: |",
        }
        if line == "  outrider.json: |" {
            found.push((role.to_owned(), String::new()));
        }
    }
    found
}

#[test]
fn the_program_would_serve_every_configuration_that_the_chart_makes() {
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
        for (role, configuration) in configurations {
            let object: Map<String, Value> = serde_json::from_str(&configuration)
                .unwrap_or_else(|error| panic!("{}: {error} in {configuration}", render.display()));
            roles.extend(object.into_iter().map(|(key, _)| key));
            std::fs::write(&file, &configuration).expect("written");
            // Models, certificates and tokens are in the pods alone.
            let check = ["config", "check", "--without-files", "--role", &role];
            succeeds(outrider(&check).args(["--config", path]));
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

/// The settings of a schema that are numbers with a range, by their keys.
fn ranges(schema: &Value, key: &str, found: &mut Vec<(String, Value)>) {
    let Some(properties) = schema["properties"].as_object() else {
        if schema["minimum"].is_number() || schema["maximum"].is_number() {
            found.push((key.to_owned(), schema.clone()));
        }
        return;
    };
    for (name, inner) in properties {
        let separator = if key.is_empty() { "" } else { "." };
        ranges(inner, &format!("{key}{separator}{name}"), found);
    }
}

#[test]
fn what_is_out_of_the_schemas_range_is_refused_by_the_program() {
    let (schema, _) = succeeds(&mut outrider(&["config", "schema"]));
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let mut settings = Vec::new();
    ranges(&schema, "", &mut settings);
    assert!(settings.len() > 30, "{}", settings.len());
    for (key, range) in settings {
        let variable = format!("OUTRIDER__{}", key.to_uppercase().replace('.', "__"));
        let check = |value: f64| {
            let mut command = outrider(&["config", "check"]);
            command.env(&variable, value.to_string());
            command
        };
        let outside = [
            range["minimum"].as_f64().map(|least| least - 1.0),
            range["maximum"].as_f64().map(|most| most + 1.0),
        ];
        for value in outside.into_iter().flatten() {
            says(&fails(&mut check(value)), &key);
        }
        if let Some(most) = range["maximum"].as_f64() {
            succeeds(&mut check(most));
        }
    }
}
