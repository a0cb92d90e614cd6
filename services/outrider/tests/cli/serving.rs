//! Services as processes.

use super::checking::other_vocabulary;
use super::health::{get, value};
use super::{ANY, Server, each_refused, json, outrider, succeeds, words};

#[test]
fn three_processes_answer_like_one_and_each_tells_of_its_own_share() {
    let drafter = Server::start(&["drafter", "--listen", ANY]);
    let verifier = Server::start(&["verifier", "--listen", ANY]);
    // With a scheme and without.
    let address = verifier.url.strip_prefix("http://").expect("a URL");
    let peers = ["--drafter", &drafter.url, "--verifier", address];
    let listen = ["coordinator", "--listen", "localhost:0"];
    let coordinator = Server::start(&[&listen[..], &peers[..]].concat());
    let named = coordinator.url.replace("http://127.0.0.1", "localhost");
    let prompt =
        words("--prompt 'Once upon a time' --max-tokens 40 --seed 3 --ignore-eos --draft-len 4");
    let apart = json(&[&prompt[..], &["--coordinator", &named]].concat());
    let together = json(&prompt);
    assert_eq!(apart["token_ids"], together["token_ids"]);
    // Each process says of its own share, and that it is ready.
    let rounds = apart["speculation"]["num_spec_steps"].as_f64();
    let rounds = rounds.expect("a number");
    let reported = get(&coordinator.admin, "/metrics");
    let labels = "{model=\"default\",method=\"coupled\"}";
    let counted = value(&reported, &format!("outrider_rounds_total{labels}"));
    assert!(rounds > 0.0 && counted == rounds, "{counted} of {rounds}");
    assert!(
        !reported.contains("outrider_engine_forwards"),
        "it has no engine"
    );
    for (peer, role) in [(&drafter, "drafter"), (&verifier, "verifier")] {
        let reported = get(&peer.admin, "/metrics");
        let forwards = format!("outrider_engine_forwards_total{{role=\"{role}\"}}");
        assert!(value(&reported, &forwards) >= rounds);
        assert!(
            !reported.contains("outrider_requests_total"),
            "it answers no clients"
        );
    }
    for server in [&drafter, &verifier, &coordinator] {
        let (said, _) = succeeds(&mut outrider(&["health", "--url", &server.admin]));
        assert_eq!(said, "ready\n");
        // A port that answers is not the port that was meant.
        let other = format!("--url {} | it is no admin port", server.url);
        each_refused(&["health"], &[&other]);
    }

    // The drafter's process dies, and the answer is still the same.
    drop(drafter);
    let alone = json(&[&prompt[..], &["--coordinator", &coordinator.url]].concat());
    assert_eq!(alone["token_ids"], together["token_ids"]);
    assert_eq!(alone["effective_method"], "target-only");
    assert!(alone["speculation"]["fallbacks"].as_u64() > Some(0));
}

/// A table of tokens that mean something else is none.
#[test]
fn a_pair_of_different_vocabularies_is_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = other_vocabulary(folder.path());
    let target = target.to_str().expect("UTF-8");
    for command in [
        &["serve", "all", "--listen", ANY][..],
        &["generate", "--prompt", "x", "--max-tokens", "1"],
    ] {
        let models = ["--target-model", target, "--draft-model", "none"];
        let mut command = outrider(&[command, &models].concat());
        command.env("OUTRIDER__DRAFTER__BIGRAM", "embedded");
        // Somebody may have the default ports.
        for service in ["DRAFTER", "VERIFIER", "ADMIN"] {
            command.env(format!("OUTRIDER__{service}__LISTEN"), ANY);
        }
        let refused = command.output().expect("a process");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{said}");
        assert!(
            said.contains("does not fit")
                && said.contains("vocabularies differ")
                && said.contains("one vocabulary alone"),
            "{said}"
        );
    }
}

/// A hub that takes requests and never answers them.
#[cfg(all(unix, feature = "hub"))]
#[test]
fn a_signal_ends_a_service_that_waits_for_its_model() {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    for role in [
        &["verifier", "--model", "org/name"][..],
        &["drafter", "--model", "org/name"],
        &["all", "--draft-model", "org/name"],
    ] {
        let hub = TcpListener::bind(ANY).expect("a port");
        let home = tempfile::tempdir().expect("a folder");
        let mut service = super::outrider(&[&["serve"], role, &["--listen", ANY]].concat())
            .env(
                "HF_ENDPOINT",
                format!("http://{}", hub.local_addr().expect("an address")),
            )
            .env("HF_HOME", home.path())
            .env_remove("HF_HUB_CACHE")
            .env_remove("HF_HUB_OFFLINE")
            .env("OUTRIDER__DRAFTER__LISTEN", ANY)
            .env("OUTRIDER__VERIFIER__LISTEN", ANY)
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the binary runs");
        let _asked = hub.accept().expect("a request");
        let began = Instant::now();
        super::signal(&service, "TERM");
        let code = loop {
            if let Some(status) = service.try_wait().expect("a child") {
                break status.code();
            }
            if began.elapsed() > Duration::from_secs(10) {
                service.kill().expect("killed");
                panic!("{role:?}: it waits for its model");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(code, Some(0), "{role:?}");
    }
}
