//! Listing methods and models, and measuring a method.

use serde_json::Value;

use super::{outrider, refusals, refused, run, shown, succeeds, words};

#[test]
fn methods_are_listed_for_people_and_programs() {
    let stdout = |line: &str| succeeds(&mut outrider(&words(line))).0;
    shown("method", &stdout("methods lossy"));
    shown("method-json", &stdout("methods lossy --json"));
    let listing = stdout("methods");
    let list: Value = serde_json::from_str(&stdout("methods --json")).expect("JSON");
    let listed = |kind: &str| -> Vec<String> {
        let entries = list[kind].as_array().expect("an array").iter();
        entries
            .map(|entry| entry["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let methods: Vec<_> = speculation::methods::names();
    assert_eq!(listed("methods"), methods);
    assert_eq!(listed("rules").len(), 10);
    for name in listed("methods").iter().chain(&listed("rules")) {
        assert!(listing.contains(name.as_str()), "{name}");
    }
    for method in speculation::methods::METHODS {
        let one = stdout(&format!("methods {}", method.name));
        assert!(one.contains(&format!("--method {}", method.name)), "{one}");
        for text in [method.when, method.summary] {
            assert!(listing.contains(text) && one.contains(text), "{text}");
        }
    }
    refusals("refused-methods", &["methods nonsense"]);
}

#[test]
fn models_that_are_built_in_are_listed() {
    let nothing = tempfile::tempdir().expect("a folder");
    let list = |line: &str| {
        let mut listing = outrider(&words(line));
        listing.env("HF_HOME", nothing.path());
        succeeds(listing.env_remove("HF_HUB_CACHE")).0
    };
    shown("models", &list("models list"));
    shown("models-json", &list("models list --json"));
}

#[test]
fn a_method_is_measured_beside_the_target_alone() {
    let args = [
        "bench",
        "--per-kind",
        "1",
        "--max-tokens",
        "16",
        "--repeats",
        "2",
    ];
    let output = run(&[&args[..], &["--json", "--draft-len", "3"]].concat());
    let reported: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(
        (&reported["prompts"], &reported["max_tokens"]),
        (&5.into(), &16.into())
    );
    let [alone, coupled] = [0, 1].map(|row| &reported["methods"][row]);
    assert_eq!(alone["method"], "target-only");
    assert_eq!(alone["target_calls_per_token"], 1.0);
    assert!(alone["draft_acceptance_rate"].is_null());
    assert_eq!(coupled["method"], "coupled");
    assert!(coupled["target_calls_per_token"].as_f64() < Some(1.0));
    assert!(coupled["draft_acceptance_rate"].as_f64() > Some(0.0));
    // Coupled drafts change nothing of the output, so both made as many tokens.
    assert_eq!(alone["tokens"], coupled["tokens"]);
    assert_eq!(reported["repeats"], 2);
    let interval = |value: &Value| [0, 1].map(|end| value[end].as_f64().expect("a number"));
    let speedup = reported["speedup"].as_f64().expect("a number");
    let [least, most] = interval(&reported["speedup_interval"]);
    assert!(
        0.0 < least && least <= speedup && speedup <= most,
        "{reported}"
    );
    let [least, most] = interval(&coupled["tokens_per_second_interval"]);
    assert!(least <= most && coupled["tokens_per_second"].as_f64() <= Some(most));
    assert!(reported["load"]["processors"].as_u64() > Some(0));
    let text = String::from_utf8(run(&args).stdout).expect("text");
    super::says(
        &text,
        "in 2 runs | coupled makes | in each run | processors meanwhile, load average",
    );
    assert!(refused(&["bench", "--repeats", "0"]).contains("1 or more"));
    let said = refused(&["bench", "--method", "target-only"]);
    assert!(said.contains("--method: target-only"), "{said}");
}
