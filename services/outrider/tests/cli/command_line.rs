//! What commands take, and how they tell that they failed.

use serde_json::Value;

use super::{each_refused, refused, run, words};

#[test]
fn models_of_services_are_for_commands_that_run_services() {
    for line in [
        "score --text x",
        "quantize embedded:draft x.gguf --to q8_0",
        "models list",
        "bigram build --text x --out y",
        "replay x.rec",
        "methods",
        "config print",
        "bench kernels",
        "serve coordinator",
        "train-head --prompts x --out y",
    ] {
        for flag in ["--target-model", "--draft-model"] {
            let said = refused(&[&words(line)[..], &[flag, "embedded:draft"]].concat());
            let problem = format!("unexpected argument '{flag}'");
            assert!(said.contains(&problem), "{line}: {said}");
        }
    }
    // Where they are taken they are not ignored either.
    each_refused(
        &[],
        &[
            "sweep --target-model no/such/folder | no/such/folder",
            "bench --target-model no/such/folder | no/such/folder",
            "bench drafting --target-model no/such/folder | no/such/folder",
            "record --out x --target-model no/such/folder | no/such/folder",
            "generate --prompt x --target-model no/such/folder | no/such/folder",
            "serve all --target-model no/such/folder | no/such/folder",
            "sweep --coordinator http://127.0.0.1:9 --draft-model x | --coordinator",
        ],
    );
}

#[test]
fn a_failure_is_json_where_json_was_asked_for() {
    for (line, part) in [
        ("score --text x --model no/such/folder", "no/such/folder"),
        ("generate --prompt x --temperature -1", "temperature"),
        ("bench --methods nonsense", "nonsense"),
        ("bench kernels --formats x", "--formats"),
        ("replay no-such.rec", "no-such.rec"),
        ("methods nonsense", "nonsense"),
        ("sweep --seeds 0", "--seeds"),
        ("config print --config no-such.toml", "no-such.toml"),
        // The command line itself.
        ("generate", "--prompt"),
        ("models list --nonsense", "--nonsense"),
    ] {
        let output = run(&[&words(line)[..], &["--json"]].concat());
        assert!(!output.status.success(), "{line}");
        // The one object on stdout.
        let told: Value = serde_json::from_slice(&output.stdout).expect(line);
        let message = told["error"]["message"].as_str().expect("a message");
        assert!(message.contains(part), "{line}: {message}");
        // In words it is told too, with JSON and without.
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains(part), "{line}: {said}");
        let plain = run(&words(line));
        assert!(plain.stdout.is_empty(), "{line}");
    }
    // Help is no failure.
    let help = run(&["score", "--json", "--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"Tells"));
}
