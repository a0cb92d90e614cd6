//! What goes wrong is counted by kind.

use std::num::NonZeroUsize;
use std::slice::from_ref;
use std::time::Duration;

use server::metrics::names;

use super::openmetrics::Scrape;
use super::{Cluster, GEN_AI, MODEL, Watched};
use crate::client::{
    Answer, With, begin, begin_unread, generate, request, try_generate, with_fault,
};
use crate::cluster::{client, config, draft, drafter_with, random_draft, silent, target};
use crate::protocol::{DraftStream, open};
use crate::relay::Relay;
use crate::tampering::{Forgery, Mode, Tampering};

#[tokio::test]
async fn refusals_are_counted_by_reason_and_show_nothing_of_the_request() {
    let cluster = Cluster::start().await;
    let verifier = [cluster.verifier.service.url()];
    let narrow = coordinator::CoordinatorConfig {
        max_requests: NonZeroUsize::MIN,
        ..config(&[], &verifier)
    };
    let coordinator = Watched::coordinator(narrow).await;
    let service = &coordinator.service;
    generate(service, request("x", 2)).await;

    let mut unknown = request("x", 2);
    unknown.model = "secret-model-name".to_owned();
    let wrong = request("x", 2).method("secret-method-name");
    for asked in [unknown, wrong, request("", 2)] {
        assert!(try_generate(service, asked).await.is_err());
    }
    let long = request("Once upon a time", 480).ignoring_eos();
    let mut running = begin_unread(service, long).await;
    running.message().await.expect("a part");
    for _ in 0..2 {
        let refused = try_generate(service, request("x", 2))
            .await
            .expect_err("one at a time");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    }
    let scrape = coordinator.scrape().await;
    let refused = |reason| scrape.value("outrider_requests_refused_total", &[("reason", reason)]);
    assert_eq!(refused("invalid"), 3.0);
    assert_eq!(refused("overloaded"), 2.0);
    assert_eq!(scrape.value("outrider_admission_rejects_total", &[]), 2.0);
    assert_eq!(scrape.sum("outrider_requests_refused_total", &[]), 5.0);
    let (_, text) = coordinator.get("/metrics").await;
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_verifier_that_is_not_there_makes_requests_unavailable() {
    let nobody = "http://127.0.0.1:9".to_owned();
    let coordinator = Watched::coordinator(config(&[], from_ref(&nobody))).await;
    let refused = try_generate(&coordinator.service, request("x", 2)).await;
    assert!(refused.is_err());
    let scrape = coordinator.scrape().await;
    let refused = [("reason", "unavailable")];
    let refused = scrape.value("outrider_requests_refused_total", &refused);
    assert_eq!(refused, 1.0);
    assert_eq!(scrape.value("outrider_admission_rejects_total", &[]), 0.0);
}

#[tokio::test]
async fn cancellations_are_counted_by_what_they_waited_for() {
    let cluster = Cluster::start().await;
    let long = request("Once upon a time", 480).ignoring_eos();
    for (method, stages) in [
        ("target-only", &["decoding"][..]),
        ("coupled", &["drafting", "verifying"]),
    ] {
        let before = cluster.coordinator.scrape().await;
        let asked = long.clone().method(method);
        let mut parts = begin(&cluster.coordinator.service, asked).await;
        for _ in 0..3 {
            parts.message().await.expect("a part");
        }
        drop(parts);
        let count = |scrape: &Scrape, stages: &[&str]| -> f64 {
            let value =
                |&stage: &&str| scrape.value("outrider_cancellations_total", &[("stage", stage)]);
            stages.iter().map(value).sum()
        };
        let earlier = count(&before, stages);
        let counted = |scrape: &Scrape| count(scrape, stages) == earlier + 1.0;
        cluster.coordinator.eventually(method, counted).await;
        let scrape = cluster.coordinator.scrape().await;
        let outcome = [MODEL, ("method", method), ("outcome", "cancelled")];
        assert_eq!(scrape.value("outrider_requests_total", &outcome), 1.0);
        let error = [&GEN_AI[..], &[("error_type", "cancelled")]].concat();
        assert!(scrape.value("gen_ai_server_request_duration_seconds_count", &error) > 0.0);
        let first = "gen_ai_server_time_to_first_token_seconds_count";
        let told = scrape.find(first, &GEN_AI);
        assert_eq!(told, None, "of successful requests only");
    }
    let scrape = cluster.coordinator.scrape().await;
    assert_eq!(scrape.sum("outrider_cancellations_total", &[]), 2.0);
}

/// A coordinator whose verifier accepts connections and says nothing.
async fn waiting(request_timeout_ms: u64) -> (Watched, tokio::net::TcpListener) {
    let (silent, _, url) = silent().await;
    let config = coordinator::CoordinatorConfig {
        request_timeout_ms: request_timeout_ms.try_into().expect("not zero"),
        ..config(&[], &[url])
    };
    (Watched::coordinator(config).await, silent)
}

#[tokio::test]
async fn a_client_that_leaves_before_its_request_began_is_counted() {
    let (coordinator, _silent) = waiting(60_000).await;
    let mut client = client(&coordinator.service);
    let asking = tokio::spawn(async move { client.generate(request("x", 2)).await.map(drop) });
    let running = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 1.0;
    coordinator.eventually("it is let in", running).await;
    asking.abort();
    let preparing = [("stage", "preparing")];
    let counted = |scrape: &Scrape| {
        scrape.value("outrider_cancellations_total", &preparing) == 1.0
            && scrape.value("outrider_requests_running", &[]) == 0.0
    };
    coordinator.eventually("it is counted", counted).await;
    let scrape = coordinator.scrape().await;
    assert_eq!(scrape.sum("outrider_cancellations_total", &[]), 1.0);
    assert_eq!(scrape.sum("outrider_requests_refused_total", &[]), 0.0);
}

#[tokio::test]
async fn requests_out_of_time_are_told_from_others_that_fail() {
    let (coordinator, _silent) = waiting(100).await;
    let refused = try_generate(&coordinator.service, request("x", 2)).await;
    let refused = refused.expect_err("out of time").code();
    assert_eq!(refused, tonic::Code::DeadlineExceeded);
    let scrape = coordinator.scrape().await;
    let refused = "outrider_requests_refused_total";
    assert_eq!(scrape.value(refused, &[("reason", "deadline")]), 1.0);
    assert_eq!(scrape.sum(refused, &[]), 1.0);

    let cluster = Cluster::start().await;
    let relay = Relay::start(cluster.verifier.service.address).await;
    let urls = [cluster.drafter.service.url(), relay.url()];
    let coordinator = Watched::coordinator(config(&urls[..1], &urls[1..])).await;
    generate(&coordinator.service, request("x", 2)).await;
    relay.hold_after(0);
    let mut hurried = request("Once upon a time", 40);
    hurried.timeout_ms = 300;
    let answer = try_generate(&coordinator.service, hurried).await;
    let finished = answer.expect("begun").finished;
    assert_eq!(finished.reason(), wire::v1::FinishReason::Error);
    let scrape = coordinator.scrape().await;
    let outcome = [MODEL, ("method", "coupled"), ("outcome", "deadline")];
    assert_eq!(scrape.value("outrider_requests_total", &outcome), 1.0);
    assert_eq!(scrape.sum("outrider_requests_total", &[]), 2.0);
}

async fn fallbacks(coordinator: &Watched, answer: &Answer, reason: &str) {
    let scrape = coordinator.scrape().await;
    let of_reason = scrape.value("outrider_fallbacks_total", &[MODEL, ("reason", reason)]);
    assert_eq!(of_reason, answer.fallbacks() as f64, "{reason}");
    assert!(of_reason > 0.0);
    assert_eq!(
        scrape.sum("outrider_fallbacks_total", &[]),
        of_reason,
        "and no other"
    );
    let tokens = scrape.value("outrider_fallback_tokens_total", &[MODEL]);
    assert_eq!(tokens, f64::from(answer.statistics().fallback_tokens));
    let retries = scrape.value("outrider_retries_total", &[MODEL, ("peer", "drafter")]);
    assert_eq!(retries, f64::from(answer.statistics().retries), "{reason}");
}

#[tokio::test]
async fn a_drafter_killed_mid_stream_is_an_unreachable_one() {
    let cluster = Cluster::start().await;
    let asked = request("Once upon a time", 120).ignoring_eos();
    let kill = || drop(cluster.drafter);
    let answer = with_fault(&cluster.coordinator.service, asked, 20, kill).await;
    fallbacks(&cluster.coordinator, &answer, "unreachable").await;
    let scrape = cluster.coordinator.scrape().await;
    let resting = [MODEL, ("role", "drafter"), ("state", "resting")];
    assert_eq!(scrape.value("outrider_peers", &resting), 1.0);
    // What the target decodes alone is still the target's own output.
    assert_eq!(
        scrape.value("outrider_inexact_requests_total", &[MODEL]),
        0.0
    );
}

#[tokio::test]
async fn a_silent_drafter_is_a_late_one() {
    let verifier = Watched::verifier(target()).await;
    // Accepts connections and says nothing.
    let (_silent, _, url) = silent().await;
    let config = coordinator::CoordinatorConfig {
        draft_timeout_ms: 100.try_into().expect("not zero"),
        ..config(&[url], &[verifier.service.url()])
    };
    let coordinator = Watched::coordinator(config).await;
    let answer = generate(&coordinator.service, request("x", 20).ignoring_eos()).await;
    // After its first silence it is left alone, so a retry finds nobody: what came first is told.
    fallbacks(&coordinator, &answer, "timeout").await;
}

#[tokio::test]
async fn a_drafter_that_takes_no_more_sessions_is_an_overloaded_one() {
    let (drafter, _) =
        drafter_with(draft(), |config| config.max_sessions = NonZeroUsize::MIN).await;
    let _taken = DraftStream::open(drafter.url(), open(|_| {})).await;
    let verifier = Watched::verifier(target()).await;
    let config = config(&[drafter.url()], &[verifier.service.url()]);
    let coordinator = Watched::coordinator(config).await;
    let answer = generate(&coordinator.service, request("x", 20).ignoring_eos()).await;
    fallbacks(&coordinator, &answer, "overloaded").await;
}

#[tokio::test]
async fn a_drafter_that_lies_is_a_malformed_one() {
    let cluster = Cluster::start().await;
    let peers = [
        cluster.drafter.service.address,
        cluster.verifier.service.address,
    ];
    let mode = Mode::Forge(Forgery::TooFew);
    let (_tampering, url) = Tampering::start(mode, peers[0], peers[1]).await;
    let coordinator = Watched::coordinator(config(from_ref(&url), from_ref(&url))).await;
    let asked = request("Once upon a time", 20)
        .method("rejection")
        .temperature(1.0)
        .ignoring_eos();
    let answer = generate(&coordinator.service, asked).await;
    fallbacks(&coordinator, &answer, "malformed").await;
}

#[tokio::test]
async fn retries_and_moves_are_counted() {
    let cluster = Cluster::start().await;
    let other = Watched::verifier(target()).await;
    let relay = Relay::start(cluster.verifier.service.address).await;
    let urls = [relay.url(), other.service.url()];
    let coordinator = Watched::coordinator(config(&[], &urls)).await;
    // Whichever of the two it goes to; the other one is never cut.
    for seed in 0..20 {
        let asked = request("Once upon a time", 60).seed(seed).ignoring_eos();
        let cut = || relay.lead_to(None);
        let answer = with_fault(&coordinator.service, asked, 10, cut).await;
        relay.lead_to(Some(cluster.verifier.service.address));
        if answer.statistics().migrations == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        let scrape = coordinator.scrape().await;
        let retries = scrape.value("outrider_retries_total", &[MODEL, ("peer", "verifier")]);
        assert!(retries >= f64::from(answer.statistics().retries) && retries > 0.0);
        let moves = scrape.value("outrider_migrations_total", &[MODEL]);
        assert_eq!(moves, f64::from(answer.statistics().migrations));
        return;
    }
    panic!("no request moved");
}

#[tokio::test]
async fn an_output_that_is_not_what_was_asked_for_is_counted() {
    let drafter = Watched::drafter(random_draft()).await;
    let verifier = Watched::verifier(target()).await;
    let relay = Relay::start(drafter.service.address).await;
    let coordinator = Watched::coordinator(config(&[relay.url()], &[verifier.service.url()])).await;
    let asked = request("Once upon a time", 60)
        .method("spec-cascade")
        .ignoring_eos();
    let cut = || relay.lead_to(None);
    let answer = with_fault(&coordinator.service, asked, 10, cut).await;
    assert!(!answer.finished.exact);
    let scrape = coordinator.scrape().await;
    assert_eq!(
        scrape.value("outrider_inexact_requests_total", &[MODEL]),
        1.0
    );
}

#[tokio::test]
async fn label_values_come_from_short_lists() {
    let cluster = Cluster::start().await;
    for method in speculation::methods::METHODS {
        // Nobody's name either.
        let mut asked = request("x", 3).method(method.name);
        asked.tenant = "somebody".to_owned();
        generate(&cluster.coordinator.service, asked).await;
    }
    for watched in [&cluster.coordinator, &cluster.drafter, &cluster.verifier] {
        let scrape = watched.scrape().await;
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
