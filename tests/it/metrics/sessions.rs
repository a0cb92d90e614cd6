//! The peers' figures while they work, and after.

use super::Cluster;
use super::openmetrics::Scrape;
use crate::client::{With, begin, generate, request};

#[tokio::test]
async fn figures_of_peers_follow_their_work_and_return_to_nothing() {
    let cluster = Cluster::start().await;
    let asked = request("Once upon a time", 40).ignoring_eos();
    let answer = generate(&cluster.coordinator.service, asked).await;
    let statistics = answer.statistics();
    for (peer, role, rounds) in [
        (&cluster.drafter, "drafter", statistics.num_spec_steps),
        (&cluster.verifier, "verifier", statistics.target_forwards),
    ] {
        let of_role = [("role", role)];
        let nothing = |scrape: &Scrape| {
            let open = [of_role[0], ("state", "open")];
            let detached = [of_role[0], ("state", "detached")];
            scrape.value("outrider_sessions", &open) == 0.0
                && scrape.value("outrider_sessions", &detached) == 0.0
                && scrape.value("outrider_engine_running", &of_role) == 0.0
                && scrape.value("outrider_engine_queue", &of_role) == 0.0
                && scrape.value("outrider_engine_sequences", &of_role) == 0.0
                && scrape.value("outrider_kv_used_tokens", &of_role) == 0.0
        };
        peer.eventually(role, nothing).await;
        let scrape = peer.scrape().await;
        let value = |name: &str| scrape.value(name, &of_role);
        let answered = [of_role[0], ("outcome", "answered")];
        assert_eq!(
            scrape.value("outrider_peer_rounds_total", &answered),
            f64::from(rounds)
        );
        assert_eq!(
            scrape.sum("outrider_peer_rounds_total", &[]),
            f64::from(rounds),
            "{role}"
        );
        for name in [
            "queue_duration_seconds",
            "forward_duration_seconds",
            "engine_batch_sequences",
        ] {
            let count = value(&format!("outrider_{name}_count"));
            assert_eq!(count, f64::from(rounds), "{name}");
        }
        assert_eq!(
            value("outrider_engine_batch_sequences_sum"),
            f64::from(rounds)
        );
        let busy = value("outrider_engine_busy_seconds_total");
        let forwards = value("outrider_forward_duration_seconds_sum");
        assert!(
            busy >= forwards * 0.999 && busy < forwards * 1.5 + 0.1,
            "{busy}, {forwards}"
        );
        let prompt = f64::from(answer.started.prompt_tokens);
        let prefilled = value("outrider_prefill_tokens_total");
        assert!(
            prefilled >= prompt - 1.0 && prefilled <= prompt + 40.0,
            "{prefilled}"
        );
        assert!(value("outrider_engine_forwarded_tokens_total") > prefilled + 40.0 - 1.0);
        assert!(value("outrider_engine_forwards_total") >= f64::from(rounds));
        assert!(value("outrider_kv_budget_tokens") > 0.0);
        assert_eq!(value("outrider_engine_running_limit"), 32.0);
        assert_eq!(value("outrider_engine_queue_limit"), 256.0);
        assert_eq!(value("outrider_sessions_limit"), 1_024.0);
        let model = [
            of_role[0],
            ("model", if role == "drafter" { "draft" } else { "target" }),
        ];
        assert!(scrape.value("outrider_model_load_seconds", &model) > 0.0);
    }
}

#[tokio::test]
async fn sessions_and_memory_are_seen_while_a_request_runs() {
    let cluster = Cluster::start().await;
    let long = request("Once upon a time", 480).ignoring_eos();
    let mut parts = begin(&cluster.coordinator.service, long).await;
    for _ in 0..3 {
        parts.message().await.expect("a part");
    }
    let open = [("role", "verifier"), ("state", "open")];
    let scrape = cluster.verifier.scrape().await;
    assert_eq!(scrape.value("outrider_sessions", &open), 1.0);
    let holds =
        |scrape: &Scrape| scrape.value("outrider_kv_used_tokens", &[("role", "verifier")]) > 0.0;
    cluster.verifier.eventually("memory is used", holds).await;
    let scrape = cluster.coordinator.scrape().await;
    assert_eq!(scrape.value("outrider_requests_running", &[]), 1.0);
    let alive = [
        ("model", "default"),
        ("role", "verifier"),
        ("state", "alive"),
    ];
    assert_eq!(scrape.value("outrider_peers", &alive), 1.0);
    drop(parts);
    let over = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 0.0;
    cluster
        .coordinator
        .eventually("the request is over", over)
        .await;
}
