//! What peers tell of themselves under load, and of each way a round can go.

use std::num::NonZeroUsize;
use std::sync::Arc;

use futures_util::future::join_all;
use verifier::{Verifier, VerifierConfig};
use wire::v1::{AcceptAt, GenerateRequest, TreeShape, tree_shape};

use super::openmetrics::Scrape;
use super::{Cluster, GEN_AI, Watched, by_position};
use crate::client::{With, begin, generate, request};
use crate::cluster::{config, target, verifier_in};
use crate::protocol::VerifyStream;
use crate::relay::Relay;

const VERIFIER: (&str, &str) = ("role", "verifier");

/// A verifier of its own configuration.
async fn watched(config: VerifierConfig) -> (Watched, Arc<Verifier>) {
    let (process, admin) = super::process().await;
    let (service, monitor) = verifier_in(process, target(), config).await;
    (Watched { service, admin }, monitor)
}

#[tokio::test]
async fn memory_that_is_fought_for_is_told_as_it_is() {
    let mut tight = VerifierConfig::default();
    tight.engine.kv_tokens = 512;
    tight.engine.prefix_sharing = true;
    let (verifier, monitor) = watched(tight).await;
    let mut config = config(&[], &[verifier.service.url()]);
    config.round_timeout_ms = 120_000.try_into().expect("not zero");
    let coordinator = Watched::coordinator(config).await;
    let asked = |seed| {
        let prompt = "Once upon a time there was a little girl. ".repeat(10);
        let asked = request(&prompt, 60).seed(seed).ignoring_eos();
        GenerateRequest {
            tenant: "acme".to_owned(),
            ..asked
        }
    };
    generate(&coordinator.service, asked(0)).await;
    let together = (0..12).map(|seed| generate(&coordinator.service, asked(seed)));
    join_all(together).await;
    let memory = monitor.memory();
    let scrape = verifier.scrape().await;
    for (name, counted) in [
        ("outrider_kv_evictions_total", memory.evictions),
        (
            "outrider_reprefilled_tokens_total",
            memory.reprefilled_tokens,
        ),
        ("outrider_shared_prefix_tokens_total", memory.shared_tokens),
    ] {
        assert!(counted > 0, "{name}: {memory:?}");
        assert_eq!(scrape.value(name, &[VERIFIER]), counted as f64, "{name}");
    }
    let batches = |of: &str| {
        let name = format!("outrider_engine_batch_sequences_{of}");
        scrape.value(&name, &[VERIFIER])
    };
    assert!(batches("sum") > batches("count"), "several in a forward");
}

#[tokio::test]
async fn what_runs_and_what_waits_is_seen_meanwhile() {
    let model = target();
    let loaded_in = model.load_time.as_secs_f64();
    let (process, admin) = super::process().await;
    let mut one_at_a_time = VerifierConfig::default();
    one_at_a_time.engine.max_batch = NonZeroUsize::MIN;
    let (service, _) = verifier_in(process, model, one_at_a_time).await;
    let verifier = Watched { service, admin };
    let coordinator = Watched::coordinator(config(&[], &[verifier.service.url()])).await;
    let mut running = Vec::new();
    for _ in 0..3 {
        let long = request("Once upon a time", 480).ignoring_eos();
        running.push(begin(&coordinator.service, long).await);
    }
    let is_busy = |scrape: &Scrape| {
        let value = |name| scrape.value(name, &[VERIFIER]);
        value("outrider_engine_running") == 1.0
            && value("outrider_engine_queue") >= 1.0
            && value("outrider_engine_sequences") >= 1.0
    };
    verifier.eventually("one runs, others wait", is_busy).await;
    let labels = [VERIFIER, ("model", "target")];
    let scrape = verifier.scrape().await;
    assert_eq!(
        scrape.value("outrider_model_load_seconds", &labels),
        loaded_in
    );
}

#[tokio::test]
async fn a_session_that_waits_for_its_next_stream_is_told_as_detached() {
    let (verifier, _) = watched(VerifierConfig::default()).await;
    let relay = Relay::start(verifier.service.address).await;
    let _stream = VerifyStream::opened(relay.url(), |_| {}).await;
    relay.cut();
    let detached = |scrape: &Scrape| {
        let of = |state| scrape.value("outrider_sessions", &[VERIFIER, ("state", state)]);
        (of("open"), of("detached")) == (0.0, 1.0)
    };
    verifier.eventually("detached", detached).await;
}

#[tokio::test]
async fn forwards_are_counted_whoever_decides_and_of_each_token_decoded_alone() {
    let cluster = Cluster::start().await;
    let (mut rounds, mut forwards) = (0.0, 0.0);
    for (method, accept_at) in [
        ("rejection", AcceptAt::Verifier),
        ("rejection", AcceptAt::Coordinator),
        ("target-only", AcceptAt::Verifier),
    ] {
        let asked = GenerateRequest {
            accept_at: accept_at.into(),
            ..request("Once upon a time", 20)
                .method(method)
                .ignoring_eos()
        };
        let answer = generate(&cluster.coordinator.service, asked).await;
        let forwarded = f64::from(answer.statistics().target_forwards);
        forwards += forwarded;
        // Decoding alone is one long round.
        rounds += if method == "target-only" {
            1.0
        } else {
            forwarded
        };
        let scrape = cluster.verifier.scrape().await;
        let answered = [VERIFIER, ("outcome", "answered")];
        let of = |name: &str| scrape.value(name, &[VERIFIER]);
        let told = (
            scrape.value("outrider_peer_rounds_total", &answered),
            of("outrider_queue_duration_seconds_count"),
            of("outrider_forward_duration_seconds_count"),
        );
        assert_eq!(told, (rounds, rounds, forwards), "{method}, {accept_at:?}");
    }
}

#[tokio::test]
async fn positions_of_a_tree_are_its_levels() {
    let cluster = Cluster::start().await;
    let shape = tree_shape::Shape::Comb(4);
    let asked = GenerateRequest {
        tree: Some(TreeShape { shape: Some(shape) }),
        ..request("Once upon a time", 40).draft_len(3).ignoring_eos()
    };
    let answer = generate(&cluster.coordinator.service, asked).await;
    let statistics = answer.statistics();
    let drafted = statistics.per_step_drafted.iter();
    let levels: Vec<u32> = drafted.map(|nodes| nodes.div_ceil(4)).collect();
    assert!(levels.contains(&3), "{levels:?}");
    let scrape = cluster.coordinator.scrape().await;
    for (name, reached) in [
        ("outrider_position_drafted_total", &levels),
        (
            "outrider_position_accepted_total",
            &statistics.per_step_accepted,
        ),
    ] {
        for (position, count) in by_position(reached.iter()) {
            let labels = [("model", "default"), ("position", position.as_str())];
            let told = scrape.value(name, &labels);
            assert_eq!(told, f64::from(count), "{name} {position}");
        }
    }
}

#[tokio::test]
async fn an_output_that_came_at_once_has_no_time_per_token() {
    let cluster = Cluster::start().await;
    generate(&cluster.coordinator.service, request("x", 1).ignoring_eos()).await;
    let scrape = cluster.coordinator.scrape().await;
    let count = |of: &str| scrape.find(&format!("gen_ai_server_{of}_seconds_count"), &GEN_AI);
    assert_eq!(count("time_to_first_token"), Some(1.0));
    assert_eq!(count("time_per_output_token"), None);
}
