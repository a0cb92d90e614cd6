//! `outrider doctor`: what is in the way, and what to do about it.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::checking::other_vocabulary;
use super::security::authority::Authority;
use super::{ANY, Server, fails, free_address, outrider, run, says, shown, succeeds, words};

/// The doctor, with no service on a port that somebody may have.
pub(crate) fn doctor(args: &str) -> Command {
    let mut command = outrider(&words(&format!("doctor {args}")));
    for service in ["COORDINATOR", "DRAFTER", "VERIFIER", "ADMIN"] {
        command.env(format!("OUTRIDER__{service}__LISTEN"), ANY);
    }
    command.env("OUTRIDER__COORDINATOR__HTTP__LISTEN", "off");
    command
}

/// Returns what `doctor` finds, as JSON, and whether it found no error.
pub(crate) fn found(command: &mut Command) -> (Vec<Value>, bool) {
    let output = command.arg("--json").output().expect("it runs");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(printed.get("error").is_none());
    assert_eq!(printed["ok"], output.status.success());
    let findings = printed["findings"].as_array().expect("a list").clone();
    for finding in &findings {
        let is_bad = ["warning", "error"].contains(&finding["level"].as_str().expect("a level"));
        assert_eq!(is_bad, finding["remedy"].is_string(), "{finding}");
    }
    (findings, output.status.success())
}

/// The one error that is found, with what to do.
#[track_caller]
pub(crate) fn only_error(command: &mut Command, section: &str) -> String {
    let (findings, is_ok) = found(command);
    let errors: Vec<_> = (findings.iter())
        .filter(|it| it["level"] == "error")
        .collect();
    assert!(!is_ok && errors.len() == 1, "{findings:?}");
    assert_eq!(errors[0]["section"], section);
    errors[0].to_string()
}

#[test]
fn nothing_is_wrong_where_nothing_is_configured_and_nothing_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (stdout, _) = succeeds(doctor("").current_dir(&folder));
    // Peers and processors are those of the machine.
    let (found, of_machine) = stdout.split_once("peers\n").expect("a section");
    shown("doctor", found);
    says(
        of_machine,
        "clock\n | cores may be used | gpu\n | errors: 0",
    );
}

#[test]
fn a_pair_that_does_not_fit_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = other_vocabulary(folder.path());
    let with_table = |arguments| {
        let mut command = doctor(arguments);
        command.env("OUTRIDER__VERIFIER__MODEL__PATH", &other);
        command.env("OUTRIDER__DRAFTER__MODEL__PATH", "none");
        command.env("OUTRIDER__DRAFTER__BIGRAM", "embedded");
        command
    };
    let error = only_error(&mut with_table(""), "pair");
    says(
        &error,
        "vocabularies differ | one vocabulary alone | name another",
    );
    // A drafter by itself fits whatever it is asked to.
    assert!(found(&mut with_table("--role drafter")).1);
}

#[test]
fn a_model_that_cannot_be_read_is_an_error_and_the_rest_is_looked_at() {
    let command = || {
        let mut command = doctor("");
        command.env("OUTRIDER__VERIFIER__MODEL__PATH", "no/such/folder");
        command.env("OUTRIDER__DRAFTER__MODEL__PATH", "embedded:draft");
        command
    };
    let error = only_error(&mut command(), "models");
    says(
        &error,
        "verifier.model | no/such/folder | outrider models list",
    );
    let (findings, _) = found(&mut command());
    for section in ["tokenizer", "ports", "cpu"] {
        assert!(
            findings.iter().any(|it| it["section"] == section),
            "{section}"
        );
    }
}

#[test]
fn a_broken_configuration_is_an_error_for_each_setting() {
    let said = fails(doctor("").env("OUTRIDER__COORDINATOR__DRAFT_LEN", "65"));
    assert_eq!(said, "", "all is on stdout");
    let mut command = doctor("");
    command
        .env("OUTRIDER__COORDINATOR__DRAFT_LEN", "65")
        .env("OUTRIDER__DRAFTER__MAX_SESSIONS", "many");
    let (findings, is_ok) = found(&mut command);
    let errors = findings.iter().filter(|it| it["level"] == "error");
    let errors: Vec<_> = errors.collect();
    assert!(!is_ok);
    let errors = serde_json::to_string_pretty(&errors).expect("JSON");
    shown("doctor-configuration", &errors);
}

#[test]
fn more_keys_and_values_than_memory_are_an_error() {
    let mut command = doctor("");
    let command = command.env("OUTRIDER__VERIFIER__ENGINE__KV_TOKENS", "4000000000000");
    says(
        &only_error(command, "memory"),
        "verifier | lower verifier.engine.kv_tokens",
    );
}

#[test]
fn an_expired_certificate_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("CA");
    let ca = authority.write(folder.path(), "ca.pem");
    let command = |(cert, key)| {
        let mut command = doctor("");
        command
            .env("OUTRIDER__TLS__MODE", "server")
            .env("OUTRIDER__TLS__CA_FILE", &ca);
        command
            .env("OUTRIDER__TLS__CERT_FILE", cert)
            .env("OUTRIDER__TLS__KEY_FILE", key);
        command
    };
    let expired = authority.issue_expired(folder.path(), "old", &["verifier.example", "127.0.0.1"]);
    let error = only_error(&mut command(expired), "certificates");
    says(
        &error,
        "tls.cert_file: verifier.example, 127.0.0.1 expired | renew it",
    );
    let (stdout, _) = succeeds(&mut command(authority.issue(
        folder.path(),
        "new",
        &["verifier.example"],
    )));
    says(
        &stdout,
        "tls.cert_file: verifier.example expires in | tls.ca_file: CN=CA",
    );
}

#[test]
fn a_port_is_told_with_who_has_it() {
    let silent = TcpListener::bind(ANY).expect("a port");
    let foreign = TcpListener::bind(ANY).expect("a port");
    let [of_silent, of_foreign] =
        [&silent, &foreign].map(|it| it.local_addr().expect("an address").to_string());
    std::thread::spawn(move || {
        for stream in foreign.incoming() {
            let _ = stream.and_then(|mut stream| stream.write_all(b"SSH-2.0-other\r\n"));
        }
    });
    for (taken, by) in [
        (&of_silent, "accepts connections and does not answer"),
        (&of_foreign, "is no outrider"),
    ] {
        let mut command = doctor("");
        let error = only_error(command.env("OUTRIDER__VERIFIER__LISTEN", taken), "ports");
        says(
            &error,
            &format!("verifier.listen: {taken} is taken by something that {by} | another port"),
        );
    }

    let server = Server::start(&["drafter", "--listen", ANY]);
    let address = server.url.trim_start_matches("http://");
    let (stdout, _) = succeeds(doctor("").env("OUTRIDER__DRAFTER__LISTEN", address));
    says(
        &stdout,
        &format!("drafter.listen: {address} is taken by an outrider drafter of 'default-draft'"),
    );
}

#[test]
fn peers_and_coordinators_are_asked() {
    let nobody = format!("http://{}", free_address());
    let verifier = Server::start(&["verifier", "--listen", ANY]);
    let model = |drafters: &[&str]| {
        let model = serde_json::json!([{ "name": "m", "verifiers": [&verifier.url], "drafters": drafters }]);
        model.to_string()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.json");
    let write = |models: &str| {
        std::fs::write(
            &file,
            format!(r#"{{"coordinator": {{"models": {models}}}}}"#),
        )
        .expect("written");
        let mut command = doctor("--config");
        command.arg(&file);
        command
    };
    let error = only_error(&mut write(&model(&[&nobody])), "peers");
    says(
        &error,
        &format!("drafter at {nobody} does not answer: nothing runs there | coordinator.models"),
    );
    let (stdout, _) = succeeds(&mut write(&model(&[])));
    says(
        &stdout,
        &format!(
            "verifier at {} serves 'default-target' | all that answered (1)",
            verifier.url
        ),
    );
    // A verifier is no drafter.
    let error = only_error(&mut write(&model(&[&verifier.url])), "peers");
    says(&error, "drafter at | Unimplemented");

    says(
        &only_error(
            &mut doctor(&format!("--coordinator {nobody}")),
            "coordinator",
        ),
        "nothing runs there",
    );
    let address = free_address();
    let all = Server::start(&["all", "--listen", &address]);
    // It listens before it has found its peers.
    while !run(&["health", "--url", &all.admin]).status.success() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (stdout, _) = succeeds(&mut doctor(&format!("--coordinator {address}")));
    says(&stdout, "'default-draft' drafts for 'default-target'");
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_gpus_says_how_to_build_one() {
    says(
        &only_error(&mut doctor("--device cuda"), "gpu"),
        "no GPU support | --features cuda",
    );
    says(&fails(&mut doctor("--device tpu")), "tpu | cuda:N");
}

/// An engine elsewhere that does not answer is an error; what a shared vLLM should not be asked is told in any case.
#[test]
fn an_engine_elsewhere_is_asked() {
    let closed = free_address();
    let mut command = doctor("--role verifier");
    command
        .env("OUTRIDER__VERIFIER__REMOTE__ENGINE", "vllm")
        .env(
            "OUTRIDER__VERIFIER__REMOTE__URL",
            format!("http://{closed}"),
        );
    let (findings, is_ok) = found(&mut command);
    assert!(!is_ok);
    let is_said = |level: &str, part: &str| {
        let messages = findings.iter().filter(|finding| finding["level"] == level);
        messages
            .map(|finding| finding["message"].to_string())
            .any(|message| message.contains(part))
    };
    assert!(
        is_said("error", "verifier.remote: the engine cannot be reached"),
        "{findings:?}"
    );
    assert!(
        is_said("warning", "skip_reading_prefix_cache"),
        "{findings:?}"
    );
}
