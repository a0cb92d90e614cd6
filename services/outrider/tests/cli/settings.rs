//! Configuration, from wherever it comes.

use serde_json::Value;

use super::{ANY, outrider, refused, run};

#[test]
fn bad_settings_name_the_key_and_where_it_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    let path = file.to_str().expect("UTF-8");
    for (text, parts) in [
        (
            "[drafter]\nlissten = \"127.0.0.1:1\"",
            &["drafter.lissten", "outrider.toml"][..],
        ),
        (
            "[coordinator]\ndraft_len = \"many\"",
            &["coordinator.draft_len", "outrider.toml"],
        ),
        ("[drafter", &["outrider.toml", "1"]),
        (
            "[verifier.model]\ndtype = \"int3\"",
            &["verifier.model", "int3", "q8_0"],
        ),
        (
            "[verifier.model]\nkv_dtype = \"int3\"",
            &["verifier.model", "kv_dtype", "int3", "f16"],
        ),
        (
            "[verifier.model]\npath = \"no/such/folder\"",
            &["verifier.model", "no/such/folder", "org/name[@revision]"],
        ),
        (
            "[verifier.model]\npath = \"org/..\"",
            &["verifier.model", "org/..", "contains"],
        ),
        (
            "[verifier]\nlisten = \"everywhere\"",
            &["verifier.listen", "everywhere"],
        ),
    ] {
        std::fs::write(&file, text).expect("written");
        // On any port, so that a service which happens to run here is not in the way.
        let listen: &[&str] = if text.contains("listen =") {
            &[]
        } else {
            &["--listen", ANY]
        };
        let said = refused(&[&["serve", "verifier", "--config", path], listen].concat());
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{text:?}: {said}"
        );
    }
    let output = outrider(&["config", "print"])
        .env("OUTRIDER__DRAFTER__NONSENSE", "1")
        .output();
    let stderr = String::from_utf8(output.expect("runs").stderr).expect("text");
    assert!(stderr.contains("OUTRIDER__DRAFTER__NONSENSE"), "{stderr}");
}

#[test]
fn a_budget_that_holds_no_request_is_refused_before_a_model_is_looked_for() {
    for (role, least) in [("verifier", "at least 128"), ("drafter", "at least 128")] {
        let upper = role.to_uppercase();
        let output = outrider(&["serve", role, "--listen", ANY, "--model", "no/such/folder"])
            .env(format!("OUTRIDER__{upper}__KV_TOKENS"), "1")
            .output();
        let said = String::from_utf8(output.expect("runs").stderr).expect("text");
        let parts = [role, "kv_tokens is 1", least, "max_draft_tokens"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn a_folder_with_gguf_files_is_taken_or_told_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let file = format!("{path}/tiny.q8_0.gguf");
    assert!(
        run(&["quantize", "embedded:draft", &file, "--to", "q8_0"])
            .status
            .success()
    );
    let score = |model: &str| run(&["score", "--text", "Once upon a time", "--model", model]);
    assert!(score(path).status.success());
    assert_eq!(score(path).stdout, score(&file).stdout);
    std::fs::copy(&file, format!("{path}/other.gguf")).expect("copied");
    let said = refused(&["score", "--text", "x", "--model", path]);
    assert!(said.contains("other.gguf, tiny.q8_0.gguf"), "{said}");
}

#[test]
fn missing_and_truncated_weights_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");
    let copy = |from: &str, to: &str| {
        std::fs::copy(format!("{source}/{from}"), folder.path().join(to)).expect("copied");
    };
    copy("draft/config.json", "config.json");
    copy("tokenizer/tokenizer.json", "tokenizer.json");
    let serve = ["serve", "verifier", "--listen", ANY, "--model", path];
    assert!(refused(&serve).contains("model.safetensors"));
    copy("draft/model.safetensors", "model.safetensors");
    let weights = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&weights).expect("read");
    std::fs::write(&weights, &bytes[..bytes.len() / 2]).expect("written");
    assert!(refused(&serve).contains("model.safetensors"));
}

#[test]
fn the_configuration_says_where_each_value_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.json");
    std::fs::write(&file, r#"{"coordinator": {"draft_len": 6}}"#).expect("written");
    let output = outrider(&["config", "print", "--config", file.to_str().expect("UTF-8")])
        .env("OUTRIDER__DRAFTER__MAX_BATCH", "7")
        .args(["--log", "debug"])
        .output()
        .expect("runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let line = |key: &str| {
        stdout
            .lines()
            .find(|line| line.starts_with(key))
            .expect(key)
    };
    assert!(
        line("coordinator.draft_len").contains('6')
            && line("coordinator.draft_len").contains("outrider.json")
    );
    assert!(line("drafter.max_batch").contains("environment OUTRIDER__DRAFTER__MAX_BATCH"));
    assert!(line("log.filter").contains("flag"));
    assert!(line("verifier.max_batch").contains("default"));
}

#[test]
fn the_annotated_example_holds_the_defaults() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/outrider.toml");
    let settings = |args: &[&str]| {
        let output = run(&[&["config", "print", "--json"], args].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let settings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        settings
            .into_iter()
            .map(|setting| (setting["key"].clone(), setting["value"].clone()))
    };
    let example: Vec<_> = settings(&["--config", example]).collect();
    assert_eq!(example, settings(&[]).collect::<Vec<_>>());
}

#[test]
fn every_setting_is_in_the_example_or_in_the_reference() {
    let read = |path: &str| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        std::fs::read_to_string(format!("{root}/{path}")).expect(path)
    };
    let told = read("deploy/outrider.toml") + &read("docs/reference/configuration.md");
    let output = run(&["config", "print", "--json"]);
    let settings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(settings.len() > 50, "{} settings", settings.len());
    for setting in &settings {
        let key = setting["key"].as_str().expect("a key");
        let names = key.split('.').filter(|name| name.parse::<usize>().is_err());
        for name in names {
            assert!(told.contains(name), "{key} is in neither");
        }
    }
}
