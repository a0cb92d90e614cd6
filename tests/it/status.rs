//! What operators see at `/status` of requests and peers, and that nothing of prompts is in it.

use serde_json::Value;

use crate::client::{With, begin, generate, request};
use crate::cluster::{Service, config, coordinator, draft, drafter, eventually, target, verifier};

const PROMPT: &str = "Once upon a time";

/// What the part of a process called `name` says.
fn part(service: &Service, name: &str) -> Value {
    let parts = service.process.status.all().into_iter();
    let mut parts = parts.filter(|part| part["part"] == name);
    parts.next().unwrap_or_default()
}

#[tokio::test]
async fn requests_under_way_replicas_and_failures_are_told() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let told = || part(&coordinator, "coordinator");
    let long = |tokens| {
        request(PROMPT, tokens)
            .with("schedule", "rounds")
            .draft_len(4)
            .ignoring_eos()
    };
    let mut parts = begin(&coordinator, long(480)).await;
    for _ in 0..3 {
        parts.message().await.expect("a part");
    }
    let now = told();
    assert_eq!(now["requests_under_way"], 1);
    let request = &now["requests"][0];
    assert_eq!(
        (&request["method"], &request["model"]),
        (&"coupled".into(), &"default".into())
    );
    assert!(
        request["tokens"].as_u64() > Some(0) && request["prompt_tokens"].as_u64() > Some(0),
        "{request}"
    );
    let stage = request["stage"].as_str();
    assert!(
        ["drafting", "verifying", "decoding"]
            .map(Some)
            .contains(&stage),
        "{request}"
    );
    let sessions: Vec<_> = now["replicas"].as_array().into_iter().flatten().collect();
    assert_eq!(sessions.len(), 2);
    assert!(
        sessions
            .iter()
            .all(|it| it["state"] == "alive" && it["sessions_from_here"] == 1),
        "{now}"
    );
    assert_eq!(part(&verifier, "verifier")["sessions_open"], 1);
    assert_eq!(part(&drafter, "drafter")["sessions_open"], 1);
    assert!(!now.to_string().contains("upon"), "{now}");
    drop(parts);
    eventually("the request is gone", || told()["requests_under_way"] == 0).await;

    drop(drafter);
    generate(&coordinator, long(24)).await;
    let now = told();
    let failure = &now["recent_failures"][0];
    assert_eq!(failure["peer"], "drafter", "{now}");
    assert!(
        failure["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{now}"
    );
    let state = |peer: &str| {
        let mut replicas = now["replicas"].as_array().into_iter().flatten();
        let found = replicas.find(|it| it["peer"] == peer);
        found.map(|it| it["state"].clone()).unwrap_or_default()
    };
    assert_ne!(state("drafter"), "alive", "{now}");
    assert_eq!(state("verifier"), "alive", "{now}");
    let long_gone = (0..40).map(|_| generate(&coordinator, long(1)));
    futures_util::future::join_all(long_gone).await;
    assert!(
        told()["recent_failures"]
            .as_array()
            .is_some_and(|all| all.len() <= 32)
    );
}
