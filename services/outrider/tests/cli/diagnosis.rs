//! `outrider doctor` at deployments that run.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::checking::other_vocabulary;
use super::doctor::{doctor, found, only_error};
use super::security::authority::{Authority, write};
use super::{ANY, Server, free_address, outrider, says};

/// Everything that is found, line by line.
fn lines(findings: &[Value]) -> String {
    let lines = findings.iter().map(|it| {
        let part = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {} -> {}\n",
            part("section"),
            part("level"),
            part("message"),
            part("remedy")
        )
    });
    lines.collect()
}

/// A configuration with this certificate, and `more`.
fn with_certificate(
    folder: &Path,
    (cert, key): &(std::path::PathBuf, std::path::PathBuf),
    more: &str,
) -> String {
    let (cert, key) = (cert.display(), key.display());
    let text =
        format!("[tls]\nmode = \"server\"\ncert_file = '{cert}'\nkey_file = '{key}'\n{more}");
    let file = write(folder, "outrider.toml", &text);
    file.to_str().expect("UTF-8").to_owned()
}

fn doctor_of(file: &str, service: &str, address: &str) -> Command {
    let mut command = doctor(&format!("--role {service} --config {file}"));
    command.env(
        format!("OUTRIDER__{}__LISTEN", service.to_uppercase()),
        address,
    );
    command
}

#[test]
fn a_service_whose_certificate_is_for_names_alone_is_found_healthy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let authority = Authority::new("CA");
    let ca = authority.write(path, "ca.pem");
    let shown = authority.issue(path, "service", &["verifier.example", "*.example"]);
    let address = free_address();
    let bare = with_certificate(path, &shown, "");
    let _verifier = Server::start(&["verifier", "--config", &bare, "--listen", &address]);

    // Where it knows its CA it is asked by a name; where it does not, it is seen to speak TLS.
    let (findings, is_ok) = found(&mut doctor_of(&bare, "verifier", &address));
    assert!(is_ok, "{findings:?}");
    says(
        &lines(&findings),
        "ports info verifier.listen | is taken by a TLS server that answers",
    );
    let (findings, is_ok) =
        found(doctor_of(&bare, "verifier", &address).env("OUTRIDER__TLS__CA_FILE", &ca));
    assert!(is_ok, "{findings:?}");
    says(
        &lines(&findings),
        "verifier.listen | is taken by an outrider verifier of 'default-target'",
    );

    // A chain that ends with its CA is believed by the process that shows it.
    let (cert, key) = authority.issue(path, "own", &["coordinator.example"]);
    let read = |file: &Path| std::fs::read_to_string(file).expect("PEM");
    let chain = write(path, "chain.pem", &(read(&cert) + &read(&ca)));
    let own = (chain, key);
    let address = free_address();
    let file = with_certificate(path, &own, "");
    let server = Server::start(&["all", "--config", &file, "--listen", &address]);
    ready(&server);
    let mut command = doctor_of(&file, "coordinator", &address);
    let (findings, is_ok) = found(&mut command);
    let said = lines(&findings);
    assert!(is_ok, "{said}");
    says(
        &said,
        "coordinator.listen | is taken by an outrider coordinator | coordinator ok | serves 'default'",
    );
}

fn ready(server: &Server) {
    while !super::run(&["health", "--url", &server.admin])
        .status
        .success()
    {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_coordinator_that_asks_for_tokens_is_found_healthy() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = write(folder.path(), "clients", "client-0123456789abcdef\n");
    let address = free_address();
    let text = format!("[auth]\nclient_tokens_file = '{}'\n", tokens.display());
    let file = write(folder.path(), "outrider.toml", &text);
    let file = file.to_str().expect("UTF-8");
    let _server = Server::start(&["all", "--config", file, "--listen", &address]);
    let (findings, is_ok) = found(&mut doctor_of(file, "coordinator", &address));
    let said = lines(&findings);
    assert!(is_ok, "{said}");
    says(
        &said,
        "coordinator.listen | a gRPC service that answers, and asks for a token",
    );
    let named = format!("--config {file} --coordinator {address}");
    let error = only_error(&mut doctor(&named), "coordinator");
    says(&error, "no token was shown | --token-file");
    let mut command = doctor(&named);
    let (findings, is_ok) = found(command.arg("--token-file").arg(&tokens));
    assert!(is_ok, "{findings:?}");
}

#[test]
fn a_coordinator_that_is_not_ready_is_told_with_the_reason() {
    let nobody = free_address();
    let server = Server::start(&["coordinator", "--listen", ANY, "--verifier", &nobody]);
    let mut command = doctor(&format!("--coordinator {}", server.url));
    command.env(
        "OUTRIDER__ADMIN__LISTEN",
        server.admin.trim_start_matches("http://"),
    );
    let (findings, is_ok) = found(&mut command);
    assert!(!is_ok);
    says(
        &lines(&findings),
        "coordinator warning the coordinator at | is not ready: outrider.v1.Coordinator is waiting for a verifier | \
         outrider health | coordinator error | no verifier answers it",
    );
    // Where its admin port is not known, that it is not ready is.
    let (findings, _) = found(&mut doctor(&format!("--coordinator {}", server.url)));
    says(
        &lines(&findings),
        "coordinator warning | is not ready -> /readyz of its admin port",
    );
}

#[test]
fn models_are_named_by_flags_as_elsewhere() {
    let error = only_error(&mut doctor("--target-model no/such/folder"), "models");
    says(&error, "verifier.model | no/such/folder");
    let folder = tempfile::tempdir().expect("a folder");
    let draft = other_vocabulary(folder.path());
    let mut command = doctor("--draft-model");
    let (findings, is_ok) = found(command.arg(&draft));
    assert!(is_ok, "{findings:?}");
    says(
        &lines(&findings),
        "pair ok | reads the text of | in its own vocabulary",
    );
}

#[test]
fn nothing_is_said_of_models_that_nobody_asked_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let verifier = Server::start(&["verifier", "--listen", ANY]);
    let text = format!(
        "[[coordinator.models]]\nname = \"m\"\nverifiers = [{:?}]\n",
        verifier.url
    );
    let file = write(folder.path(), "outrider.toml", &text);
    let file = file.to_str().expect("UTF-8");
    let address = free_address();
    let _all = Server::start(&["all", "--listen", &address]);
    for arguments in [
        format!("--config {file}"),
        format!("--coordinator {address}"),
        "--role coordinator".to_owned(),
        "--role verifier".to_owned(),
        "--target-model embedded:target".to_owned(),
    ] {
        let (findings, _) = found(&mut doctor(&arguments));
        let of_models = |section: &Value| {
            ["models", "tokenizer", "chat template"].contains(&section.as_str().unwrap_or_default())
        };
        let of_models: Vec<_> = findings
            .iter()
            .filter(|it| of_models(&it["section"]))
            .cloned()
            .collect();
        let said = lines(&of_models);
        assert!(!said.contains("default-draft"), "{arguments}: {said}");
        let is_own = arguments.contains("verifier") || arguments.contains("target-model");
        assert_eq!(
            said.contains("default-target"),
            is_own,
            "{arguments}: {said}"
        );
    }
}

/// The port of the OpenAI API, or of metrics, where that of gRPC is meant.
#[test]
fn a_port_of_another_protocol_is_told_with_the_flag_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let http = free_address();
    let text = format!("[coordinator.http]\nlisten = {http:?}\n");
    let file = write(folder.path(), "outrider.toml", &text);
    let server = Server::start(&[
        "all",
        "--listen",
        ANY,
        "--config",
        file.to_str().expect("UTF-8"),
    ]);
    ready(&server);
    for (wrong, parts) in [
        (
            http.clone(),
            "--coordinator | HTTP status 404, not in gRPC | OpenAI API | coordinator.listen",
        ),
        (
            server.admin.clone(),
            "--coordinator | coordinator.listen | admin",
        ),
    ] {
        let generate = [
            "generate",
            "--prompt",
            "x",
            "--max-tokens",
            "1",
            "--coordinator",
            &wrong,
        ];
        let said = super::fails(&mut outrider(&generate));
        says(&said, parts);
        assert!(!said.contains("compression"), "{said}");
        let error = only_error(
            &mut doctor(&format!("--coordinator {wrong}")),
            "coordinator",
        );
        says(&error, "coordinator.listen");
    }
    // The other way round.
    let url = &server.url;
    let (head, body) = super::health::answer(url, "/v1/models");
    says(&head, "HTTP/1.1 400");
    says(&body, "coordinator.http.listen | OpenAI API");
}
