//! Commands that connect to a deployment, with credentials in order and with each of them wrong.

use outrider::config::Config;
use serde_json::Value;
use tonic::Code;
use wire::v1::DescribeRequest;

use super::authority::{Authority, write};
use super::deployment::Deployment;
use crate::{json, outrider, refused, succeeds, words};

const PROMPT: &str = "--prompt 'Once upon a time' --max-tokens 16 --seed 3 --draft-len 4";

#[test]
fn three_processes_under_mutual_tls_with_tokens_answer_like_one_in_clear() {
    let deployment = Deployment::start();
    let url = format!("https://localhost:{}", deployment.ports[0]);
    let ask = |files: &str| {
        let given = deployment.arguments(&url, files);
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        json(&[words(PROMPT), given].concat())
    };
    let secured = ask("ca cert key token");
    let clear = json(&words(PROMPT));
    assert_eq!(secured["token_ids"], clear["token_ids"]);
    assert!(secured["speculation"]["num_spec_steps"].as_u64() > Some(0));

    // The token from where a container has it.
    let mut asking = outrider(&[&["generate", "--json"], &words(PROMPT)[..]].concat());
    asking
        .args(deployment.arguments(&url, "ca cert key"))
        .env("OUTRIDER_TOKEN_FILE", deployment.path("token"));
    let answer: Value = serde_json::from_str(&succeeds(&mut asking).0).expect("JSON");
    assert_eq!(answer["token_ids"], clear["token_ids"]);

    each_wrong_credential_is_named(&deployment, &url);
    every_command_connects_with_what_it_is_given(&deployment, &url);
    a_verifier_is_asked_with_the_peers_token(&deployment);
}

/// What else can be wrong, and how it is told, `shared/ops/tests/security` shows.
fn each_wrong_credential_is_named(deployment: &Deployment, url: &str) {
    let path = deployment.folder.path();
    let other = Authority::new("other");
    other.write(path, "other-ca.pem");
    other.issue(path, "stranger", &["client.test"]);
    for line in [
        "ca cert key | Unauthenticated: no token was shown",
        "ca cert key token=none | none: cannot be read",
        "token | https needs tls.ca_file (--ca-file)",
        "ca=other-ca.pem cert key token | not among those in tls.ca_file",
        "ca token | asks for a certificate: set tls.cert_file",
        "ca cert=stranger.pem key=stranger.key token | does not know the CA of this side's certificate",
    ] {
        let (files, said) = line.split_once(" | ").expect("what is said");
        let given = deployment.arguments(url, files);
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let message = refused(&[vec!["generate"], words(PROMPT), given].concat());
        assert!(message.contains(said), "{files}: {message}");
        assert!(!message.contains("0123456789abcdef"), "{message}");
        // To wait makes no certificate a better one.
        let is_found_at_once = files.contains("other-ca");
        assert!(
            !(is_found_at_once && message.contains("waiting for")),
            "{message}"
        );
    }
}

fn every_command_connects_with_what_it_is_given(deployment: &Deployment, url: &str) {
    let said_by_user = write(deployment.folder.path(), "input", "hello\n");
    for command in ["bench --per-kind 1 --max-tokens 4", "chat --max-tokens 4"] {
        let input = std::fs::File::open(&said_by_user).expect("written");
        let given = deployment.arguments(url, "ca cert key token");
        succeeds(outrider(&words(command)).args(given).stdin(input));
    }
}

/// As a coordinator would, and not with a client's.
fn a_verifier_is_asked_with_the_peers_token(deployment: &Deployment) {
    let url = format!("https://localhost:{}", deployment.ports[1]);
    let mut config = Config::default();
    config.tls.ca_file = deployment.path("ca.pem");
    config.tls.cert_file = deployment.path("client.pem");
    config.tls.key_file = deployment.path("client.key");
    config.auth.peer_token_file = deployment.path("token");
    let described = async {
        let mut verifier = outrider::connect::to_verifier(&url, &config).expect("a URL");
        verifier.describe(DescribeRequest {}).await
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let refused = runtime.block_on(described).expect_err("a client's token");
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    let said = refused.message();
    assert!(said.starts_with("the token shown is not known"), "{said}");
}
