//! Configuration, from wherever it comes.

use serde_json::Value;

use super::{ANY, fails, outrider, refusals, refused, run, says, shown, succeeds, words};

#[test]
fn bad_settings_name_the_key_and_where_it_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    let path = file.to_str().expect("UTF-8");
    let mut transcript = Vec::new();
    for line in [
        "[drafter];lissten = '127.0.0.1:1'",
        "[coordinator];draft_len = 'many'",
        "[verifier.model];dtype = 'int3'",
        "[verifier.model];path = 'no/such/folder'",
        "[verifier];listen = 'everywhere'",
        "[drafter.cascade];models = ['embedded:small']",
        "[verifier];model = 'org/name'",
        "[drafter.cascade];lenient = 2",
    ] {
        let text = line.replace(';', "\n");
        std::fs::write(&file, &text).expect("written");
        // On any port, so that a service which happens to run here is not in the way.
        let listen = if text.contains("listen =") {
            ""
        } else {
            "--listen 127.0.0.1:0"
        };
        let said =
            refused(&[&["serve", "verifier", "--config", path][..], &words(listen)].concat());
        // Without the lines of the log.
        let error = said.lines().find(|line| line.starts_with("error: "));
        transcript.push(format!("{text}\n{}\n\n", error.expect("an error")));
    }
    shown("refused-settings", &transcript.concat());
    let key = "OUTRIDER__DRAFTER__NONSENSE";
    says(&fails(outrider(&["config", "print"]).env(key, "1")), key);
}

#[test]
fn a_budget_that_holds_no_request_is_refused_before_a_model_is_looked_for() {
    for role in ["verifier", "drafter"] {
        let upper = role.to_uppercase();
        let mut serving = outrider(&["serve", role, "--listen", ANY, "--model", "no/such/folder"]);
        serving.env(format!("OUTRIDER__{upper}__ENGINE__KV_TOKENS"), "1");
        let parts = format!("{role} | kv_tokens is 1 | at least 128 | max_draft_tokens");
        says(&fails(&mut serving), &parts);
    }
}

#[test]
fn the_configuration_says_where_each_value_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.json");
    std::fs::write(&file, r#"{"coordinator": {"draft_len": 6}}"#).expect("written");
    let mut printing = outrider(&["config", "print", "--log", "debug", "--config"]);
    printing
        .arg(&file)
        .env("OUTRIDER__DRAFTER__ENGINE__MAX_BATCH", "7");
    let (stdout, _) = succeeds(&mut printing);
    let (given, of_defaults): (Vec<_>, Vec<_>) = stdout
        .lines()
        .partition(|line| !line.ends_with("# default"));
    shown("config", &given.join("\n"));
    assert!(of_defaults.len() > 50, "{stdout}");
}

#[test]
fn the_filter_of_rust_log_is_for_where_nothing_else_sets_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    std::fs::write(&file, "[log]\nfilter = 'warn'\n").expect("written");
    let print = |rust_log: &str| {
        let mut printing = outrider(&["config", "print"]);
        printing.env("RUST_LOG", rust_log);
        printing
    };
    let line = |printing: &mut std::process::Command| {
        let (stdout, _) = succeeds(printing);
        let line = stdout.lines().find(|line| line.starts_with("log.filter"));
        line.expect("a line").to_owned()
    };
    says(
        &line(&mut print("info,h2=debug")),
        "\"info,h2=debug\"  # environment RUST_LOG",
    );
    says(
        &line(print("debug").arg("--config").arg(&file)),
        "\"warn\" | outrider.toml",
    );
    says(
        &line(print("debug").args(["--log", "error"])),
        "\"error\"  # flag",
    );
    says(&line(&mut print("")), "\"info\"  # default");
    let parts = "log.filter from environment RUST_LOG | \"debg\" | debug, trace | TARGET=LEVEL";
    says(&fails(&mut print("debg")), parts);
    refusals(
        "refused-filters",
        &["serve verifier --listen 127.0.0.1:0 --log nonsense"],
    );
}

#[test]
fn the_annotated_example_holds_the_defaults() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/outrider.toml");
    let settings = |args: &[&str]| {
        let (printed, _) = succeeds(outrider(&["config", "print", "--json"]).args(args));
        let settings: Vec<Value> = serde_json::from_str(&printed).expect("JSON");
        let settings = settings.into_iter();
        settings.map(|setting| (setting["key"].clone(), setting["value"].clone()))
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
    let reported = read("deploy/outrider.toml") + &read("docs/reference/configuration.md");
    let output = run(&["config", "print", "--json"]);
    let settings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(settings.len() > 50, "{} settings", settings.len());
    for setting in &settings {
        let key = setting["key"].as_str().expect("a key");
        let names = key.split('.').filter(|name| name.parse::<usize>().is_err());
        for name in names {
            assert!(reported.contains(name), "{key} is in neither");
        }
    }
}
