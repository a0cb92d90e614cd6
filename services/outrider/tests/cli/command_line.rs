//! What commands take, and how they tell that they failed.

use serde_json::Value;

use super::{refused, run};

#[test]
fn models_of_services_are_for_commands_that_run_services() {
    for args in [
        &["score", "--text", "x"][..],
        &["quantize", "embedded:draft", "x.gguf", "--to", "q8_0"],
        &["models", "list"],
        &["methods"],
        &["config", "print"],
        &["serve", "coordinator"],
    ] {
        for flag in ["--target-model", "--draft-model"] {
            let said = refused(&[args, &[flag, "embedded:draft"]].concat());
            let problem = format!("unexpected argument '{flag}'");
            assert!(said.contains(&problem), "{args:?}: {said}");
        }
    }
    // Where they are taken they are not ignored either.
    for command in [
        &["bench"][..],
        &["generate", "--prompt", "x"],
        &["serve", "all"],
    ] {
        let said = refused(&[command, &["--target-model", "no/such/folder"]].concat());
        assert!(said.contains("no/such/folder"), "{command:?}: {said}");
    }
    let elsewhere = ["--coordinator", "http://127.0.0.1:9", "--draft-model", "x"];
    let said = refused(&[&["bench"], &elsewhere[..]].concat());
    assert!(said.contains("--coordinator"), "{said}");
}

/// The one object on stdout, and the words on stderr.
fn failure(args: &[&str]) -> (Value, String) {
    let output = run(args);
    assert!(!output.status.success(), "{args:?}");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let told =
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {stdout}"));
    (told, String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_failure_is_json_where_json_was_asked_for() {
    for (args, part) in [
        (
            &["score", "--text", "x", "--model", "no/such/folder"][..],
            "no/such/folder",
        ),
        (
            &["generate", "--prompt", "x", "--temperature", "-1"],
            "temperature",
        ),
        (&["methods", "nonsense"], "nonsense"),
        (&["bench", "--per-kind", "0"], "--per-kind"),
        (&["sweep", "--seeds", "3"], "outrider-bench sweep --seeds 3"),
        (&["bench", "kernels"], "outrider-bench kernels"),
        (
            &["config", "print", "--config", "no-such.toml"],
            "no-such.toml",
        ),
        // The command line itself.
        (&["generate"], "--prompt"),
        (&["models", "list", "--nonsense"], "--nonsense"),
    ] {
        let (told, said) = failure(&[args, &["--json"]].concat());
        let message = told["error"]["message"].as_str().expect("a message");
        assert!(message.contains(part), "{args:?}: {message}");
        // In words it is told too, with JSON and without.
        assert!(said.contains(part), "{args:?}: {said}");
        let plain = run(args);
        assert!(plain.stdout.is_empty(), "{args:?}");
    }
    // Help is no failure.
    let help = run(&["score", "--json", "--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"Tells"));
}

#[test]
fn a_command_that_moved_says_where_it_went() {
    for (args, there) in [
        (
            &["bench", "decode", "--models=random"][..],
            "decode --models=random",
        ),
        (&["record", "--out", "x"], "record --out x"),
        (&["replay", "--help"], "replay --help"),
        (&["train-head"], "train-head"),
        (&["bigram", "build"], "bigram build"),
    ] {
        let said = refused(args);
        let command = format!("cargo run --release -p outrider-bench -- {there}`");
        assert!(said.contains(&command), "{args:?}: {said}");
    }
}
