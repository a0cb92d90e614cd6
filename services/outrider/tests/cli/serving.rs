//! Services as processes.

use std::process::Command;

use super::{ANY, Server, json};

#[test]
fn three_processes_answer_like_one() {
    let drafter = Server::start(&["drafter", "--listen", ANY]);
    let verifier = Server::start(&["verifier", "--listen", ANY]);
    let peers = ["--drafter", &drafter.url, "--verifier", &verifier.url];
    let coordinator = Server::start(&[&["coordinator", "--listen", ANY][..], &peers[..]].concat());
    let prompt = [
        "--prompt",
        "Once upon a time",
        "--max-tokens",
        "40",
        "--seed",
        "3",
    ];
    let apart = json(&[&prompt[..], &["--coordinator", &coordinator.url]].concat());
    let together = json(&prompt);
    assert_eq!(apart["token_ids"], together["token_ids"]);
    assert!(apart["speculation"]["num_spec_steps"].as_u64() > Some(0));

    // The drafter's process dies, and the answer is still the same.
    drop(drafter);
    let alone = json(&[&prompt[..], &["--coordinator", &coordinator.url]].concat());
    assert_eq!(alone["token_ids"], together["token_ids"]);
    assert_eq!(alone["effective_method"], "target-only");
    assert!(alone["speculation"]["fallbacks"].as_u64() > Some(0));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_service_in_order() {
    let mut server = Server::start(&["all", "--listen", ANY]);
    let pid = server.child.id().to_string();
    let killed = Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .expect("kill runs");
    assert!(killed.success());
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
}
