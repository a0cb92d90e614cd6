//! What goes wrong is counted by kind.

use std::num::NonZeroUsize;
use std::slice::from_ref;

use ops::metrics::names;
use tokio::net::TcpListener;
use tonic::Code;

use super::{GEN_AI, MODEL, Scrape};
use crate::client::{
    Answer, With, begin, begin_unread, generate, request, try_generate, with_fault,
};
use crate::cluster::{
    Cluster, Service, client, config, coordinator, draft, drafter, drafter_with, random_draft,
    silent, target, verifier,
};
use crate::protocol::SessionStream;
use crate::relay::Relay;
use crate::tampering::{Forgery, Mode, tampered};

/// Requests refused for `reason`, and all that were.
fn refused(coordinator: &Service, reason: &str) -> (f64, f64) {
    let scrape = coordinator.scrape();
    let reported = |labels: &[_]| scrape.sum("outrider_requests_refused_total", labels);
    (reported(&[("reason", reason)]), reported(&[]))
}

#[tokio::test]
async fn refusals_are_counted_by_reason_and_show_nothing_of_the_request() {
    let (verifier, _) = verifier(target()).await;
    let mut narrow = config(&[], &[verifier.url()]);
    narrow.max_requests = NonZeroUsize::MIN;
    let one_at_a_time = coordinator(narrow).await;
    generate(&one_at_a_time, request("x", 2)).await;
    let mut unknown = request("x", 2);
    unknown.model = "secret-model-name".to_owned();
    let wrong = request("x", 2).method("secret-method-name");
    let cold = request("x", 2).temperature(-1.0);
    for requested in [unknown, wrong, cold] {
        assert!(try_generate(&one_at_a_time, requested).await.is_err());
    }
    assert_eq!(refused(&one_at_a_time, "invalid"), (3.0, 3.0));
    let long = request("Once upon a time", 480).ignoring_eos();
    let mut running = begin_unread(&one_at_a_time, long).await;
    running.message().await.expect("a part");
    let status = try_generate(&one_at_a_time, request("x", 2)).await;
    let status = status.expect_err("one at a time");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(refused(&one_at_a_time, "overloaded"), (1.0, 4.0));
    let rejects = |of: &Service| of.scrape().sum("outrider_admission_rejects_total", &[]);
    assert_eq!(rejects(&one_at_a_time), 1.0);
    let text = one_at_a_time.process.metrics.encode().expect("text");
    assert!(!text.contains("secret"), "{text}");

    let nobody = coordinator(config(&[], &["http://127.0.0.1:9".to_owned()])).await;
    assert!(try_generate(&nobody, request("x", 2)).await.is_err());
    assert_eq!(refused(&nobody, "unavailable"), (1.0, 1.0));
    assert_eq!(rejects(&nobody), 0.0);
    let (hurried, _silent) = waiting(100).await;
    let status = try_generate(&hurried, request("x", 2)).await;
    assert_eq!(status.expect_err("late").code(), Code::DeadlineExceeded);
    assert_eq!(refused(&hurried, "deadline"), (1.0, 1.0));
}

#[tokio::test]
async fn cancellations_are_counted_by_what_they_waited_for() {
    let cluster = Cluster::start(draft()).await;
    let coordinator = &cluster.coordinator;
    let long = request("Once upon a time", 480).ignoring_eos();
    for (method, stages) in [
        ("target-only", &["decoding"][..]),
        ("coupled", &["drafting", "verifying"]),
    ] {
        let mut parts = begin(coordinator, long.clone().method(method)).await;
        for _ in 0..3 {
            parts.message().await.expect("a part");
        }
        drop(parts);
        let counted = |scrape: &Scrape| {
            let of = |stage: &&str| scrape.sum("outrider_cancellations_total", &[("stage", stage)]);
            stages.iter().map(of).sum::<f64>() == 1.0
        };
        coordinator.shows(method, counted).await;
        let scrape = coordinator.scrape();
        let outcome = [MODEL, ("method", method), ("outcome", "cancelled")];
        assert_eq!(scrape.value("outrider_requests_total", &outcome), 1.0);
        let error = [&GEN_AI[..], &[("error_type", "cancelled")]].concat();
        assert!(scrape.value("gen_ai_server_request_duration_seconds_count", &error) > 0.0);
        let first = "gen_ai_server_time_to_first_token_seconds_count";
        let reported = scrape.find(first, &GEN_AI);
        assert_eq!(reported, None, "of successful requests only");
    }
    let all = coordinator
        .scrape()
        .sum("outrider_cancellations_total", &[]);
    assert_eq!(all, 2.0);
}

/// A coordinator whose verifier accepts connections and says nothing.
async fn waiting(request_timeout_ms: u64) -> (Service, TcpListener) {
    let (silent, _, url) = silent().await;
    let mut config = config(&[], &[url]);
    config.request_timeout_ms = request_timeout_ms.try_into().expect("not zero");
    (coordinator(config).await, silent)
}

#[tokio::test]
async fn a_client_that_leaves_before_its_request_began_is_counted() {
    let (coordinator, _silent) = waiting(60_000).await;
    let mut client = client(&coordinator);
    let asking = tokio::spawn(async move { client.generate(request("x", 2)).await.map(drop) });
    let running = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 1.0;
    coordinator.shows("it is let in", running).await;
    asking.abort();
    let preparing = [("stage", "preparing")];
    let counted = |scrape: &Scrape| {
        scrape.value("outrider_cancellations_total", &preparing) == 1.0
            && scrape.value("outrider_requests_running", &[]) == 0.0
    };
    coordinator.shows("it is counted", counted).await;
    let all = coordinator
        .scrape()
        .sum("outrider_cancellations_total", &[]);
    assert_eq!((all, refused(&coordinator, "invalid").1), (1.0, 0.0));
}

#[tokio::test]
async fn requests_out_of_time_are_told_from_others_that_fail() {
    let cluster = Cluster::start(draft()).await;
    let relay = Relay::start(cluster.verifier.address).await;
    let coordinator = coordinator(config(&[cluster.drafter.url()], &[relay.url()])).await;
    generate(&coordinator, request("x", 2)).await;
    relay.hold_after(0);
    let mut hurried = request("Once upon a time", 40);
    hurried.timeout_ms = 300;
    try_generate(&coordinator, hurried).await.expect("begun");
    let scrape = coordinator.scrape();
    let outcome = [MODEL, ("method", "coupled"), ("outcome", "deadline")];
    assert_eq!(scrape.value("outrider_requests_total", &outcome), 1.0);
    assert_eq!(scrape.sum("outrider_requests_total", &[]), 2.0);
}

/// Checks that the fallbacks of the one answer are counted for `reason` and no other.
fn fell_back(coordinator: &Service, answer: &Answer, reason: &str) {
    let scrape = coordinator.scrape();
    let reported = |labels: &[_]| scrape.sum("outrider_fallbacks_total", labels);
    let fallbacks = answer.fallbacks() as f64;
    assert!(fallbacks > 0.0);
    assert_eq!(
        (reported(&[("reason", reason)]), reported(&[])),
        (fallbacks, fallbacks)
    );
    let statistics = answer.statistics();
    let retries = [("peer", "drafter")];
    for (name, labels, expected) in [
        ("retries", &retries[..], statistics.retries),
        ("fallback_tokens", &[], statistics.fallback_tokens),
        ("inexact_requests", &[], u32::from(!answer.finished.exact)),
    ] {
        let reported = scrape.sum(&format!("outrider_{name}_total"), labels);
        assert_eq!(reported, f64::from(expected), "{reason}, {name}");
    }
}

#[tokio::test]
async fn a_drafter_killed_mid_stream_is_an_unreachable_one() {
    let Cluster {
        drafter,
        verifier: _verifier,
        coordinator,
        ..
    } = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 120).ignoring_eos();
    let answer = with_fault(&coordinator, requested, 20, || drop(drafter)).await;
    // What the target decodes alone is still the target's own output.
    assert!(answer.finished.exact);
    fell_back(&coordinator, &answer, "unreachable");
    let resting = [("role", "drafter"), ("state", "resting")];
    assert_eq!(coordinator.scrape().sum("outrider_peers", &resting), 1.0);
}

#[tokio::test]
async fn each_loss_of_a_drafter_is_counted_by_its_kind() {
    let (verifier, _) = verifier(target()).await;
    let requested = |tokens| request("Once upon a time", tokens).ignoring_eos();
    // Accepts connections and says nothing. After its first silence it is left alone, so a retry finds nobody: what
    // came first is told.
    let (_silent, _, url) = silent().await;
    let mut impatient = config(&[url], &[verifier.url()]);
    impatient.draft_timeout_ms = 100.try_into().expect("not zero");
    let late = coordinator(impatient).await;
    fell_back(&late, &generate(&late, requested(20)).await, "timeout");

    let (full, _) = drafter_with(draft(), |config| config.max_sessions = NonZeroUsize::MIN).await;
    let _taken = SessionStream::at_drafter(full.url(), |_| {}).await;
    let overloaded = coordinator(config(&[full.url()], &[verifier.url()])).await;
    fell_back(
        &overloaded,
        &generate(&overloaded, requested(20)).await,
        "overloaded",
    );

    let (liar, _) = drafter(draft()).await;
    let mode = Mode::Forge(Forgery::TooFew);
    let (_tampering, lied_to) = tampered(mode, &liar, &verifier).await;
    let rejection = requested(20).method("rejection").temperature(1.0);
    fell_back(&lied_to, &generate(&lied_to, rejection).await, "malformed");

    // And an output that is then not what was asked for.
    let (random, _) = drafter(random_draft(|_| {})).await;
    let relay = Relay::start(random.address).await;
    let inexact = coordinator(config(from_ref(&relay.url()), &[verifier.url()])).await;
    let requested = requested(60).method("spec-cascade");
    let answer = with_fault(&inexact, requested, 10, || relay.lead_to(None)).await;
    assert!(!answer.finished.exact);
    let reported = inexact.scrape().sum("outrider_inexact_requests_total", &[]);
    assert_eq!(reported, 1.0);
}

#[tokio::test]
async fn label_values_come_from_short_lists() {
    let cluster = Cluster::start(draft()).await;
    for method in speculation::methods::METHODS {
        // Nobody's name either.
        let mut requested = request("x", 3).method(method.name);
        requested.tenant = "somebody".to_owned();
        generate(&cluster.coordinator, requested).await;
    }
    for service in [&cluster.coordinator, &cluster.drafter, &cluster.verifier] {
        let scrape = service.scrape();
        let known = names::ALL.iter().flat_map(|metric| metric.labels);
        for label in known {
            let values = scrape.label_values(label);
            assert!(values.len() <= 25, "{label}: {values:?}");
            for value in values {
                // Nobody's session, which is 32 hexadecimal digits.
                let hex = value.chars().filter(char::is_ascii_hexdigit).count();
                assert!(hex < 32 && !value.contains("somebody"), "{label}={value}");
            }
        }
    }
}
