//! What commands take, and how they tell that they failed.

use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

use super::{ANY, fails, outrider, refusals, run, says, words};

#[test]
fn models_of_services_are_for_commands_that_run_services() {
    refusals(
        "refused-models",
        &[
            "bench --target-model no/such/folder",
            "generate --prompt x --target-model no/such/folder",
            "bench --coordinator http://127.0.0.1:9 --draft-model x",
            "score --text x --target-model x",
        ],
    );
    let mut serving = on_free_ports("serve all --target-model no/such/folder");
    says(&fails(&mut serving), "no/such/folder");
}

/// A command of services, none of them on a port that somebody may have.
fn on_free_ports(line: &str) -> Command {
    let mut serving = outrider(&words(line));
    for service in ["COORDINATOR", "DRAFTER", "VERIFIER", "ADMIN"] {
        serving.env(format!("OUTRIDER__{service}__LISTEN"), ANY);
    }
    serving.env("OUTRIDER__COORDINATOR__HTTP__LISTEN", "off");
    serving
}

#[test]
fn a_port_that_is_taken_is_told_before_a_model_is_looked_for() {
    let other = TcpListener::bind(ANY).expect("a port");
    let taken = other.local_addr().expect("an address").to_string();
    for (role, flag) in [
        ("all", "--target-model"),
        ("drafter", "--model"),
        ("verifier", "--model"),
    ] {
        let service = if role == "all" { "VERIFIER" } else { role };
        let mut serving = on_free_ports(&format!("serve {role} {flag} no/such/folder"));
        serving.env(
            format!("OUTRIDER__{}__LISTEN", service.to_uppercase()),
            &taken,
        );
        says(&fails(&mut serving), &format!("cannot listen on {taken}"));
    }
}

#[test]
fn a_failure_is_json_where_json_was_asked_for() {
    for (line, part) in [
        ("score --text x --model no/such/folder", "no/such/folder"),
        ("generate --prompt x --temperature -1", "temperature"),
        ("methods nonsense", "nonsense"),
        ("bench --per-kind 0", "--per-kind"),
        ("config print --config no-such.toml", "no-such.toml"),
        // The command line itself.
        ("generate", "--prompt"),
        ("models list --nonsense", "--nonsense"),
    ] {
        let output = run(&[&words(line)[..], &["--json"]].concat());
        assert!(!output.status.success(), "{line}");
        // The one object on stdout.
        let reported: Value = serde_json::from_slice(&output.stdout).expect(line);
        let message = reported["error"]["message"].as_str().expect("a message");
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
