//! Listing methods, and measuring one.

use serde_json::Value;

use super::{refused, run};

#[test]
fn methods_are_listed_for_people_and_programs() {
    let listing = String::from_utf8(run(&["methods"]).stdout).expect("text");
    let list: Value = serde_json::from_slice(&run(&["methods", "--json"]).stdout).expect("JSON");
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
        let one = String::from_utf8(run(&["methods", method.name]).stdout).expect("text");
        assert!(one.contains(&format!("--method {}", method.name)), "{one}");
        for text in [method.when, method.summary] {
            assert!(listing.contains(text) && one.contains(text), "{text}");
        }
    }
    let alone: Value =
        serde_json::from_slice(&run(&["methods", "gumbel", "--json"]).stdout).expect("JSON");
    assert_eq!(alone, list["methods"][0]);
    assert_eq!(alone["when"], speculation::methods::METHODS[0].when);
    assert!(refused(&["methods", "nonsense"]).contains("spec-cascade"));
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
