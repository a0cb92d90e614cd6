//! Who may know whom: the layering of ARCHITECTURE.md, checked on the manifests themselves.
//!
//! The rules concern direct dependencies, those for a crate's own tests included. Free are the
//! system tests, which compose everything, and the build script of `wire`, which generates code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What a package depends on directly, by name.
type Dependencies = BTreeSet<String>;

/// The crates of this workspace that a crate may import; `None` for crates without a rule.
fn allowed_of_ours(package: &str) -> Option<&'static [&'static str]> {
    match package {
        "llama" | "speculation" | "net" => Some(&[]),
        "ops" => Some(&["net"]),
        "model" => Some(&["llama", "speculation"]),
        "engines" | "wire" => Some(&["speculation"]),
        "calls" => Some(&["speculation", "wire"]),
        "grammar" => Some(&["speculation", "calls", "text", "wire"]),
        "peer" => Some(&["speculation", "grammar", "model", "wire", "net", "ops"]),
        "drafter" => Some(&[
            "speculation",
            "grammar",
            "text",
            "model",
            "wire",
            "net",
            "ops",
            "peer",
        ]),
        "verifier" => Some(&[
            "speculation",
            "grammar",
            "model",
            "wire",
            "net",
            "ops",
            "peer",
            "engines",
        ]),
        "text" => Some(&["speculation", "calls", "wire"]),
        "client" => Some(&["wire", "net"]),
        "fleet" => Some(&["speculation", "grammar", "text", "wire", "net"]),
        "coordinator" => Some(&[
            "speculation",
            "calls",
            "text",
            "wire",
            "net",
            "ops",
            "fleet",
        ]),
        _ => None,
    }
}

/// Crates from outside that only some of ours may import. A trailing `*` stands for any ending.
const CONFINED: [(&str, &[&str]); 11] = [
    ("candle-*", &["model", "outrider-bench"]),
    ("llama-cpp-*", &["llama"]),
    // What bytes a token stands for the peers know there alone.
    ("llguidance", &["grammar"]),
    ("toktrie", &["grammar"]),
    ("prost", &["wire", "outrider-bench"]),
    ("figment", &["ops"]),
    ("opentelemetry*", &["ops"]),
    // Tests of `ops` shake hands by themselves.
    ("rustls", &["net", "ops"]),
    ("rustls-native-certs", &["model"]),
    ("tokio-rustls", &["net", "ops"]),
    ("tokenizers", &["text", "outrider-bench", "model"]),
];

/// Crates that would make the mathematics of `speculation` depend on a machine, a clock or a format.
const IMPURE: [&str; 5] = ["candle-core", "tokio", "prost", "tonic", "serde"];

const EXEMPT: &str = "outrider-tests";

/// Returns one line for every dependency of `package` that breaks a rule.
fn violations(package: &str, dependencies: &Dependencies, ours: &Dependencies) -> Vec<String> {
    if package == EXEMPT {
        return Vec::new();
    }
    let mut broken = Vec::new();
    for dependency in dependencies {
        // What tests share is nobody's layer.
        if ours.contains(dependency)
            && dependency != EXEMPT
            && allowed_of_ours(package).is_some_and(|allowed| !allowed.contains(&&**dependency))
        {
            broken.push(format!("{package} must not import our {dependency}"));
        }
        for (pattern, owners) in CONFINED {
            if matches(pattern, dependency) && !owners.contains(&package) {
                let owners = owners.join(", ");
                broken.push(format!("{package} imports {dependency}: only {owners} may"));
            }
        }
        if package == "speculation" && IMPURE.contains(&&**dependency) {
            broken.push(format!("speculation must stay pure: {dependency}"));
        }
    }
    broken
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// The packages of the workspace as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .arg("--manifest-path")
        .arg(workspace().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"]
        .as_array()
        .expect("a list of packages")
        .clone()
}

fn workspace() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ is in the root").to_owned()
}

fn name(package: &Value) -> String {
    package["name"].as_str().expect("a name").to_owned()
}

/// The direct dependencies that the rules concern; their `kind` is null, `dev` or `build`.
fn dependencies(package: &Value) -> Dependencies {
    let all = package["dependencies"].as_array().expect("a list");
    all.iter()
        .filter(|dependency| dependency["kind"] != "build" || name(package) != "wire")
        .map(name)
        .collect()
}

#[test]
fn every_crate_keeps_to_its_layer() {
    let packages = packages();
    let ours: Dependencies = packages.iter().map(name).collect();
    let broken: Vec<String> = packages
        .iter()
        .flat_map(|package| violations(&name(package), &dependencies(package), &ours))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_rules_name_crates_that_exist() {
    let ours: Dependencies = packages().iter().map(name).collect();
    let confined = CONFINED.iter().flat_map(|(_, owners)| owners.iter());
    for owner in confined {
        assert!(ours.contains(*owner), "a rule names {owner}, which is gone");
    }
    for package in &ours {
        let has_rule = allowed_of_ours(package).is_some();
        let is_free = ["outrider", "outrider-bench", EXEMPT].contains(&&**package);
        assert!(has_rule || is_free, "{package} has no layer");
    }
}

#[test]
fn mains_stay_thin() {
    const MAX_LINES: usize = 50;
    let services = std::fs::read_dir(workspace().join("services")).expect("services/ is there");
    let mut mains = 0;
    for service in services {
        let path = service.expect("a service").path().join("src/main.rs");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        mains += 1;
        let lines = text.lines().count();
        assert!(
            lines <= MAX_LINES,
            "{} has {lines} lines, over {MAX_LINES}",
            path.display()
        );
    }
    assert!(mains > 0, "no main.rs was looked at");
}

/// Each rule must be able to fail: dependencies that break it, and the words it answers with; and one that keeps it.
#[test]
fn each_rule_catches_its_offender() {
    let ours = ["model", "wire", "peer", "net", "ops", "drafter"];
    let ours = ours.map(str::to_owned).into();
    let broken = |package, dependency: &str| {
        let broken = violations(package, &[dependency.to_owned()].into(), &ours);
        broken.join(", ")
    };
    for (package, offender, words, allowed) in [
        ("speculation", "wire", "must not import our wire", "rand"),
        ("speculation", "tokio", "must stay pure", "thiserror"),
        ("model", "net", "must not import our net", "candle-core"),
        ("net", "ops", "must not import our ops", "rustls"),
        ("ops", "peer", "must not import our peer", "net"),
        ("model", "llama-cpp-2", "only llama may", "llama"),
        ("client", "model", "must not import our model", "net"),
        ("fleet", "ops", "must not import our ops", "wire"),
        ("verifier", "drafter", "must not import our drafter", "peer"),
        ("coordinator", "model", "must not import our model", "wire"),
        (
            "coordinator",
            "prost",
            "only wire, outrider-bench may",
            "prost-types",
        ),
        (
            "verifier",
            "candle-nn",
            "only model, outrider-bench may",
            EXEMPT,
        ),
        ("outrider", "opentelemetry_sdk", "only ops may", "drafter"),
    ] {
        let said = broken(package, offender);
        assert!(said.contains(words), "{package} -> {offender} gave {said}");
        assert_eq!(broken(package, allowed), "", "{package} -> {allowed}");
    }
    assert_eq!(broken(EXEMPT, "candle-core"), "");
}
