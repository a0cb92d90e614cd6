//! What commands take, and how they tell that they failed.

use serde_json::Value;

use super::{refused, run};

#[test]
fn models_of_services_are_for_commands_that_run_services() {
    for args in [
        &["bigram", "build", "--text", "x", "--out", "y"][..],
        &["replay", "x.rec"],
        &["kernels"],
        &["train-head", "--prompts", "x", "--out", "y"],
    ] {
        let said = refused(&[args, &["--target-model", "embedded:draft"]].concat());
        let problem = "unexpected argument '--target-model'";
        assert!(said.contains(problem), "{args:?}: {said}");
    }
    // Where they are taken they are not ignored either.
    for command in [
        &["sweep"][..],
        &["compare"],
        &["drafting"],
        &["record", "--out", "x"],
    ] {
        let said = refused(&[command, &["--target-model", "no/such/folder"]].concat());
        assert!(said.contains("no/such/folder"), "{command:?}: {said}");
    }
    let elsewhere = ["--coordinator", "http://127.0.0.1:9", "--draft-model", "x"];
    let said = refused(&[&["sweep"], &elsewhere[..]].concat());
    assert!(said.contains("--coordinator"), "{said}");
}

#[test]
fn a_failure_is_json_where_json_was_asked_for() {
    for (args, part) in [
        (&["compare", "--methods", "nonsense"][..], "nonsense"),
        (&["kernels", "--formats", "x"], "--formats"),
        (&["replay", "no-such.rec"], "no-such.rec"),
        (&["sweep", "--seeds", "0"], "--seeds"),
    ] {
        let output = run(&[args, &["--json"]].concat());
        assert!(!output.status.success(), "{args:?}");
        let reported: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let message = reported["error"]["message"].as_str().expect("a message");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(part));
    }
}
