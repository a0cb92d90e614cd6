//! The spans of requests that go wrong.

use ops::trace::names;
use wire::v1::{FinishReason, GenerateRequest};

use super::collector::{Seen, Spans, int, text};
use super::requests::check_rounds;
use super::watched::Watched;
use crate::client::{With, begin, generate, request, with_fault};

fn requested() -> GenerateRequest {
    request("Once upon a time", 120)
        .temperature(0.0)
        .ignoring_eos()
}

/// The rounds that failed.
fn failed(spans: &Spans) -> Vec<&Seen> {
    let rounds = spans.all(names::ROUND).into_iter();
    let failed = rounds.filter(|round| round.text(names::REASON).as_deref() == Some("failed"));
    failed.collect()
}

#[tokio::test]
async fn a_failed_round_has_spans_although_nobody_asked_for_them() {
    // No round has spans of its own.
    let services = Watched::start(|telemetry| telemetry.round_every = 0).await;
    let cut = || services.to_verifier.cut();
    let answer = with_fault(&services.coordinator, requested(), 20, cut).await;
    let retries = answer.statistics().retries;
    assert!(retries > 0);
    let spans = services.spans().await;
    check_rounds(&spans, &answer);
    let is_own = |seen: &Seen| seen.service == "outrider-coordinator";
    assert!(spans.0.iter().all(is_own));
    let failed = failed(&spans);
    assert_eq!(failed.len(), 1, "one round was cut");
    let steps = spans.within(failed[0]);
    let reported = |step: &&Seen| {
        let attempt = step.int(names::ATTEMPT).unwrap_or(0);
        (step.span.name.clone(), attempt, step.has_failed())
    };
    let requested: Vec<_> = steps.iter().map(reported).collect();
    let verify = |attempt, failed| (names::VERIFY.to_owned(), attempt, failed);
    assert_eq!(requested.last(), Some(&verify(retries.into(), false)));
    assert!(requested.contains(&verify(0, true)), "{requested:?}");
    assert_eq!(failed[0].int(names::ATTEMPT), Some(retries.into()));
    for step in &steps {
        let blamed = step.text(names::PEER);
        assert_eq!(blamed.as_deref(), step.has_failed().then_some("verifier"));
        assert!(step.span.end_time_unix_nano > step.span.start_time_unix_nano);
    }
    let answered = steps.last().expect("an answer");
    let parts = spans.names_within(answered);
    assert!(
        parts.contains(&"forward") && parts.contains(&"accept"),
        "{parts:?}"
    );

    let root = spans.one("chat default");
    let retried = root.events(names::RETRY);
    assert_eq!(retried.len(), retries as usize);
    assert_eq!(text(retried[0], names::PEER).as_deref(), Some("verifier"));
    assert_eq!(int(retried[0], names::INDEX), failed[0].int(names::INDEX));
    assert!(text(retried[0], names::FAILURE).is_some_and(|failure| !failure.is_empty()));
    let last = spans.all(names::ROUND).len() - 1;
    assert_eq!(last, 1, "the failed one and the last");
}

#[tokio::test]
async fn a_lost_drafter_is_seen_where_it_was_lost() {
    let services = Watched::start(|_| {}).await;
    let lose = || services.to_drafter.lead_to(None);
    let answer = with_fault(&services.coordinator, requested(), 20, lose).await;
    assert_eq!(answer.finished.reason(), FinishReason::Length);
    let fallbacks = answer.statistics().fallbacks.clone();
    assert!(!fallbacks.is_empty());
    let spans = services.spans().await;
    let root = spans.one("chat default");
    let reported = root.events(names::FALLBACK);
    assert_eq!(reported.len(), fallbacks.len());
    for (reported, fallback) in reported.iter().zip(&fallbacks) {
        assert_eq!(text(reported, names::PEER).as_deref(), Some("drafter"));
        assert_eq!(
            int(reported, names::BASE_LEN),
            Some(fallback.position.into())
        );
        let reason = text(reported, names::FALLBACK_REASON);
        assert_eq!(reason.as_ref(), Some(&fallback.reason));
    }
    let failed = failed(&spans);
    assert_eq!(failed.len(), fallbacks.len(), "each in a round of its own");
    let first = failed[0];
    let reason = first.text(names::FALLBACK_REASON);
    assert_eq!(reason.as_ref(), Some(&fallbacks[0].reason));
    let steps = spans.within(first);
    assert!(steps[0].span.name == "draft" && steps[0].has_failed());
    let last = steps.last().expect("the target went on");
    assert!(last.span.name == "decode" && last.int(names::DECODED_TOKENS) > Some(0));
    for step in spans.all(names::DECODE) {
        // As the verifier tells it, where it has no spans of its own.
        let parts = spans.names_within(step);
        assert!(!parts.is_empty(), "{step:?}");
    }
}

#[tokio::test]
async fn a_session_that_moves_is_seen_to() {
    let (other, _) = crate::cluster::verifier(crate::cluster::target()).await;
    let other_url = other.url();
    let services =
        Watched::start_with(|_| {}, |config| config.models[0].verifiers.push(other_url)).await;
    // Sessions go to either; the first that goes to the one that is watched moves.
    let (mut seed, mut lost) = (0, false);
    let moved = loop {
        let lose = || {
            lost = services.verifier_monitor.sessions().attached > 0;
            if lost {
                services.to_verifier.lead_to(None);
            }
        };
        let answer = with_fault(&services.coordinator, requested().seed(seed), 20, lose).await;
        if lost {
            break answer;
        }
        seed += 1;
        assert!(seed < 40, "no session ever went to the one of two");
    };
    assert_eq!(moved.finished.reason(), FinishReason::Length);
    assert_eq!(moved.statistics().migrations, 1);
    let spans = services.spans().await;
    let roots = spans.all("chat default");
    let (last, before) = roots.split_last().expect("requests");
    assert_eq!(before.len() as u64, seed);
    let stays = |root: &&Seen| root.events(names::MIGRATION).is_empty();
    assert!(before.iter().all(stays));
    let reported = last.events(names::MIGRATION);
    assert_eq!(reported.len(), 1);
    assert_eq!(int(reported[0], names::MIGRATIONS), Some(1));
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_trace() {
    let services = Watched::start(|_| {}).await;
    let requested = request("Once upon a time", 480).ignoring_eos();
    let mut parts = begin(&services.coordinator, requested).await;
    for _ in 0..3 {
        parts.message().await.expect("no status").expect("a part");
    }
    drop(parts);
    // Another request, so that the cancellation has been seen before the end.
    generate(&services.coordinator, request("Once upon a time", 8)).await;
    let spans = services.spans().await;
    let roots = spans.all("chat default");
    assert_eq!(roots.len(), 2);
    let stage = roots[0].text(names::STAGE).expect("a stage");
    assert!(["drafting", "verifying"].contains(&&stage[..]), "{stage}");
    assert!(roots[0].texts().contains("cancelled") && !roots[0].has_failed());
    assert!(!spans.within(roots[0]).is_empty());
    for step in spans.0.iter().filter(|seen| seen.span.kind == 3) {
        // Also the one that was waited for.
        assert!(step.span.end_time_unix_nano > step.span.start_time_unix_nano);
    }
}

#[tokio::test]
async fn a_lost_verifier_fails_the_request_and_its_span() {
    let services = Watched::start_with(|_| {}, |config| config.verifier_retries = 0).await;
    let lose = || services.to_verifier.lead_to(None);
    let answer = with_fault(&services.coordinator, requested(), 20, lose).await;
    assert_eq!(answer.finished.reason(), FinishReason::Error);
    let spans = services.spans().await;
    let root = spans.one("chat default");
    assert!(root.has_failed());
    assert_eq!(root.text(names::ERROR_TYPE).as_deref(), Some("Unavailable"));
    let failed = failed(&spans);
    assert_eq!(failed.len(), 1);
    let steps = spans.within(failed[0]);
    let last = steps.last().expect("steps");
    assert!(last.span.name == "verify" && last.has_failed());
}
