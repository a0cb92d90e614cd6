//! The peers' figures while they work, under load, and after.

use std::num::NonZeroUsize;

use futures_util::future::join_all;
use wire::v1::GenerateRequest;

use super::Scrape;
use crate::client::{With, begin, generate, request};
use crate::cluster::{Cluster, config, coordinator, draft, target, verifier_with};

const VERIFIER: (&str, &str) = ("role", "verifier");

#[tokio::test]
async fn figures_of_peers_follow_their_work_and_return_to_nothing() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 40).ignoring_eos();
    let answer = generate(&cluster.coordinator, requested).await;
    let statistics = answer.statistics();
    for (peer, role, rounds) in [
        (&cluster.drafter, "drafter", statistics.num_spec_steps),
        (&cluster.verifier, "verifier", statistics.target_forwards),
    ] {
        let rounds = f64::from(rounds);
        let names = ["sessions", "engine_running", "engine_queue"].map(|name| (name, 0.0));
        let held = ["engine_sequences", "kv_used_tokens"].map(|name| (name, 0.0));
        let nothing = |scrape: &Scrape| {
            let mut gauges = names.iter().chain(&held);
            gauges.all(|(name, none)| scrape.sum(&format!("outrider_{name}"), &[]) == *none)
        };
        peer.shows(role, nothing).await;
        let scrape = peer.scrape();
        let of_role = [("role", role)];
        let value = |name: &str| scrape.value(&format!("outrider_{name}"), &of_role);
        for (name, expected) in [
            ("queue_duration_seconds_count", rounds),
            ("forward_duration_seconds_count", rounds),
            ("engine_batch_sequences_count", rounds),
            ("engine_batch_sequences_sum", rounds),
            ("engine_running_limit", 32.0),
            ("engine_queue_limit", 256.0),
            ("sessions_limit", 1_024.0),
        ] {
            assert_eq!(value(name), expected, "{role}, {name}");
        }
        let answered = [of_role[0], ("outcome", "answered")];
        for labels in [&answered[..], &[]] {
            let reported = scrape.sum("outrider_peer_rounds_total", labels);
            assert_eq!(reported, rounds, "{role}");
        }
        let busy = value("engine_busy_seconds_total");
        let forwards = value("forward_duration_seconds_sum");
        assert!(
            busy >= forwards * 0.999 && busy < forwards * 1.5 + 0.1,
            "{busy}, {forwards}"
        );
        let prompt = f64::from(answer.started.prompt_tokens);
        let prefilled = value("prefill_tokens_total");
        assert!(
            (prompt - 1.0..=prompt + 40.0).contains(&prefilled),
            "{prefilled}"
        );
        assert!(value("engine_forwarded_tokens_total") > prefilled + 40.0 - 1.0);
        assert!(value("engine_forwards_total") >= rounds);
        assert!(value("kv_budget_tokens") > 0.0);
    }
}

#[tokio::test]
async fn what_runs_and_what_waits_is_seen_meanwhile() {
    let model = target();
    let loaded_in = model.load_time.as_secs_f64();
    let (verifier, _) = verifier_with(model, |config| {
        config.engine.max_batch = NonZeroUsize::MIN;
    })
    .await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    let mut running = Vec::new();
    for _ in 0..3 {
        let long = request("Once upon a time", 480).ignoring_eos();
        running.push(begin(&coordinator, long).await);
    }
    let is_busy = |scrape: &Scrape| {
        let value = |name| scrape.value(name, &[VERIFIER]);
        value("outrider_engine_running") == 1.0
            && value("outrider_engine_queue") >= 1.0
            && value("outrider_engine_sequences") >= 1.0
            && value("outrider_kv_used_tokens") > 0.0
            && scrape.value("outrider_sessions", &[VERIFIER, ("state", "open")]) >= 2.0
    };
    verifier.shows("one runs, others wait", is_busy).await;
    let labels = [VERIFIER, ("model", "target")];
    let reported = verifier
        .scrape()
        .value("outrider_model_load_seconds", &labels);
    assert_eq!(reported, loaded_in);
    let scrape = coordinator.scrape();
    assert!(scrape.value("outrider_requests_running", &[]) >= 2.0);
    let alive = [VERIFIER, ("state", "alive")];
    assert_eq!(scrape.sum("outrider_peers", &alive), 1.0);
    drop(running);
    let over = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 0.0;
    coordinator.shows("the requests are over", over).await;
}

#[tokio::test]
async fn memory_that_is_fought_for_is_told_as_it_is() {
    let (verifier, monitor) = verifier_with(target(), |config| {
        config.engine.kv_tokens = 512;
        config.engine.prefix_sharing = true;
    })
    .await;
    let mut config = config(&[], &[verifier.url()]);
    config.round_timeout_ms = 120_000.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let requested = |seed| {
        let prompt = "Once upon a time there was a little girl. ".repeat(10);
        let requested = request(&prompt, 60).seed(seed).ignoring_eos();
        GenerateRequest {
            tenant: "acme".to_owned(),
            ..requested
        }
    };
    generate(&coordinator, requested(0)).await;
    join_all((0..12).map(|seed| generate(&coordinator, requested(seed)))).await;
    let memory = monitor.engine();
    let scrape = verifier.scrape();
    let value = |name: &str| scrape.value(&format!("outrider_{name}"), &[VERIFIER]);
    for (name, counted) in [
        ("kv_evictions_total", memory.evictions),
        ("reprefilled_tokens_total", memory.reprefilled_tokens),
        ("shared_prefix_tokens_total", memory.shared_tokens),
    ] {
        assert!(counted > 0, "{name}: {memory:?}");
        assert_eq!(value(name), counted as f64, "{name}");
    }
    let (forwards, sequences) = ("engine_batch_sequences_count", "engine_batch_sequences_sum");
    assert!(value(sequences) > value(forwards), "several in a forward");
}

#[tokio::test]
async fn forwards_are_counted_whoever_decides_and_of_each_token_decoded_alone() {
    let cluster = Cluster::start(draft()).await;
    let (mut rounds, mut forwards) = (0.0, 0.0);
    for (method, accept_at) in [
        ("rejection", "verifier"),
        ("rejection", "coordinator"),
        ("target-only", "verifier"),
    ] {
        let requested = request("Once upon a time", 20).method(method);
        let requested = requested.ignoring_eos().with("accept_at", accept_at);
        let answer = generate(&cluster.coordinator, requested).await;
        let forwarded = f64::from(answer.statistics().target_forwards);
        forwards += forwarded;
        // Decoding alone is one long round.
        let is_one = method == "target-only";
        rounds += if is_one { 1.0 } else { forwarded };
        let scrape = cluster.verifier.scrape();
        let reported = (
            scrape.sum("outrider_peer_rounds_total", &[("outcome", "answered")]),
            scrape.sum("outrider_queue_duration_seconds_count", &[]),
            scrape.sum("outrider_forward_duration_seconds_count", &[]),
        );
        assert_eq!(
            reported,
            (rounds, rounds, forwards),
            "{method}, {accept_at:?}"
        );
    }
}
