//! The spans of requests that go well.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use ops::trace::names;
use wire::v1::GenerateRequest;

use super::collector::{Seen, Spans, int};
use super::watched::Watched;
use crate::client::{Answer, With, generate, request, try_generate, with_parent};

/// A request of some ten rounds.
fn requested() -> GenerateRequest {
    request("Once upon a time", 40)
        .temperature(0.0)
        .ignoring_eos()
}

/// The attributes of each round of a request, whether it has a span or is an event.
fn rounds(spans: &Spans) -> Vec<&[KeyValue]> {
    let with_spans = spans.all(names::ROUND).into_iter();
    let with_spans = with_spans.map(|round| round.span.attributes.as_slice());
    with_spans.chain(root(spans).events(names::ROUND)).collect()
}

/// Sums an attribute over the rounds of a request.
fn over_rounds(spans: &Spans, key: &str) -> i64 {
    let reported = rounds(spans).into_iter();
    reported.filter_map(|round| int(round, key)).sum()
}

fn root(spans: &Spans) -> &Seen {
    spans.one("chat default")
}

/// What holds for the rounds of every request that is traced.
pub(super) fn check_rounds(spans: &Spans, answer: &Answer) {
    let statistics = answer.statistics();
    let accepted = statistics.num_accepted_draft_tokens;
    for (key, expected) in [
        (names::EMITTED_LEN, answer.tokens.len() as i64),
        (names::DRAFT_LEN, i64::from(statistics.drafted)),
        (names::ACCEPTED_LEN, i64::from(accepted)),
    ] {
        assert_eq!(over_rounds(spans, key), expected, "{key}");
    }
    let reported = rounds(spans).into_iter();
    let mut indices: Vec<_> = reported
        .filter_map(|round| int(round, names::INDEX))
        .collect();
    indices.sort_unstable();
    let each_once: Vec<_> = (0..statistics.rounds as i64).collect();
    assert_eq!(indices, each_once);
    assert_eq!(rounds(spans).len(), each_once.len());
}

/// What holds for all spans together.
fn check_trace(spans: &Spans) {
    let trace = &root(spans).span.trace_id;
    for seen in &spans.0 {
        assert_eq!(&seen.span.trace_id, trace, "{}", seen.span.name);
        assert!(seen.span.end_time_unix_nano >= seen.span.start_time_unix_nano);
        let parent = &seen.span.parent_span_id;
        let parent = spans.0.iter().find(|other| &other.span.span_id == parent);
        if let Some(parent) = parent.filter(|parent| parent.service == seen.service) {
            assert!(seen.span.start_time_unix_nano >= parent.span.start_time_unix_nano);
            assert!(seen.span.end_time_unix_nano <= parent.span.end_time_unix_nano);
        }
        let is_root = seen.span.span_id == root(spans).span.span_id;
        assert_eq!(parent.is_none(), is_root, "{}", seen.span.name);
    }
}

#[tokio::test]
async fn a_request_is_one_tree_over_the_three_services() {
    let services = Watched::start(|_| {}).await;
    let answer = generate(&services.coordinator, requested()).await;
    let spans = services.spans().await;
    check_trace(&spans);
    check_rounds(&spans, &answer);
    let root = root(&spans);
    let place = (root.service.as_str(), root.span.kind);
    assert_eq!(place, ("outrider-coordinator", 2));
    let parts = spans.within(root);
    let [tokenized, parts @ .., flushed] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert!(tokenized.span.name == "tokenize" && flushed.span.name == "flush");
    assert!(parts.iter().all(|part| part.span.name == "round"));
    assert!(tokenized.span.end_time_unix_nano <= parts[0].span.start_time_unix_nano);

    let statistics = answer.statistics();
    let rounds = statistics.rounds as i64;
    let exchanged = (statistics.wire_bytes_per_round * rounds as f64).round() as i64;
    assert_eq!(over_rounds(&spans, names::WIRE_BYTES), exchanged);
    for round in spans.all(names::ROUND) {
        let index = round.int(names::INDEX).expect("an index");
        let is_last = index == rounds - 1;
        assert!(index % 2 == 0 || is_last, "round {index} has spans");
        let requested = spans.within(round);
        let [drafting, verifying] = requested.as_slice() else {
            // The last slot is the target's own: nothing is drafted for it.
            assert!(is_last && requested.len() == 1 && round.int(names::DRAFT_LEN) == Some(0));
            continue;
        };
        for (step, name, service) in [
            (drafting, "draft", "drafter"),
            (verifying, "verify", "verifier"),
        ] {
            assert_eq!((step.span.name.as_str(), step.span.kind), (name, 3));
            let address = step.text(names::SERVER_ADDRESS);
            assert_eq!(address.as_deref(), Some("127.0.0.1"));
            assert!(step.int(names::SERVER_PORT).is_some_and(|port| port > 0));
            if index % 2 != 0 {
                // Nobody knew that it would be the last: its parts are those that the peers told.
                let parts = spans.within(step);
                let is_told = |part: &&Seen| {
                    let by = part.text(names::MEASURED_BY);
                    part.service == "outrider-coordinator" && by.is_some()
                };
                assert!(parts.iter().all(is_told), "{parts:?}");
                assert!(parts.iter().any(|part| part.span.name == "forward"));
                continue;
            }
            let at_peer = spans.within(step);
            let [at_peer] = at_peer.as_slice() else {
                panic!("one answer: {at_peer:?}");
            };
            assert_eq!(at_peer.service, format!("outrider-{service}"));
            assert_eq!((at_peer.span.name.as_str(), at_peer.span.kind), (name, 2));
            let parts = spans.names_within(at_peer);
            // What takes no time at all has no span.
            let forward = if index == 0 { "prefill" } else { "forward" };
            assert!(parts.contains(&forward), "round {index}: {parts:?}");
            assert_eq!(parts.contains(&"accept"), name == "verify", "{parts:?}");
            let parts = spans.within(at_peer).into_iter();
            let forwards: Vec<_> = parts.filter(|part| part.span.name == forward).collect();
            assert_eq!(forwards.len(), 1);
            assert!(forwards[0].int(names::FORWARDED_TOKENS) > Some(0));
            for reported in [at_peer, forwards[0]] {
                assert_eq!(reported.int(names::BATCH), Some(1), "it was alone");
            }
        }
    }
}

#[tokio::test]
async fn a_request_says_what_it_was_and_what_came_of_it() {
    let services = Watched::start(|_| {}).await;
    let mut requested = request("Once upon a time", 24)
        .method("rejection")
        .temperature(0.5)
        .seed(9)
        .ignoring_eos();
    let sampling = requested.sampling.get_or_insert_default();
    (sampling.top_k, sampling.top_p) = (40, Some(0.75));
    let answer = generate(&services.coordinator, requested).await;
    let spans = services.spans().await;
    check_rounds(&spans, &answer);
    let root = root(&spans);
    let texts = [
        (names::OPERATION, "chat"),
        (names::PROVIDER, "outrider"),
        (names::REQUEST_MODEL, "default"),
        (names::METHOD, answer.started.method.as_str()),
        (names::EFFECTIVE_METHOD, "rejection"),
        (names::RESPONSE_ID, answer.started.request_id.as_str()),
    ];
    for (key, expected) in texts {
        assert_eq!(root.text(key).as_deref(), Some(expected), "{key}");
    }
    let usage = answer.finished.usage.expect("usage");
    let reported = answer.statistics().rounds;
    let numbers = [
        (names::INPUT_TOKENS, i64::from(usage.prompt_tokens)),
        (names::OUTPUT_TOKENS, i64::from(usage.completion_tokens)),
        (names::REQUEST_MAX_TOKENS, 24),
        (names::REQUEST_SEED, 9),
        (names::REQUEST_TOP_K, 40),
        (names::ROUNDS, reported as i64),
    ];
    for (key, expected) in numbers {
        assert_eq!(root.int(key), Some(expected), "{key}");
    }
    let timing = answer.finished.timing.expect("timing");
    let measures = [
        (names::REQUEST_TEMPERATURE, 0.5),
        (names::REQUEST_TOP_P, 0.75),
        (names::FIRST_TOKEN, timing.time_to_first_token_ms / 1e3),
    ];
    for (key, expected) in measures {
        let expected = Value::DoubleValue(expected);
        assert_eq!(root.value(key), Some(&expected), "{key}");
    }
    assert_eq!(root.value(names::EXACT), Some(&Value::BoolValue(true)));
    let Some(Value::ArrayValue(reasons)) = root.value(names::FINISH_REASONS) else {
        panic!("a list of reasons");
    };
    let reasons: Vec<_> = reasons.values.iter().map(|reason| &reason.value).collect();
    assert_eq!(reasons, [&Some(Value::StringValue("length".to_owned()))]);
    let first = spans.all(names::ROUND)[0];
    assert!(first.int(names::BATCH) >= Some(1) && first.int(names::WIRE_BYTES) > Some(0));
    let mut refused = 0;
    for round in rounds(&spans) {
        let [before, drafted, accepted] = [names::BASE_LEN, names::DRAFT_LEN, names::ACCEPTED_LEN]
            .map(|key| int(round, key).expect(key));
        // What follows the accepted ones, if anything does.
        let expected = (accepted < drafted).then_some(before + accepted);
        assert_eq!(int(round, names::REJECTED_POSITION), expected);
        refused += usize::from(expected.is_some());
    }
    assert!(refused > 0, "nothing was ever refused");
}

#[tokio::test]
async fn a_long_output_keeps_all_its_rounds() {
    let services = Watched::start(|telemetry| telemetry.round_every = 0).await;
    let requested = request("Once upon a time", 400).ignoring_eos();
    let answer = generate(&services.coordinator, requested.draft_len(1)).await;
    let spans = services.spans().await;
    check_rounds(&spans, &answer);
    let events = root(&spans).events(names::ROUND).len();
    assert!(events > 128, "{events}: the SDK alone keeps 128");
}

#[tokio::test]
async fn every_plan_has_its_rounds_told() {
    for method in "target-only draft-only token-cascade bild spec-cascade".split(' ') {
        let services = Watched::start(|_| {}).await;
        let answer = generate(&services.coordinator, requested().method(method)).await;
        let spans = services.spans().await;
        check_trace(&spans);
        let statistics = answer.statistics();
        assert_eq!(rounds(&spans).len() as u64, statistics.rounds, "{method}");
        let emitted = over_rounds(&spans, names::EMITTED_LEN);
        assert_eq!(emitted, answer.tokens.len() as i64, "{method}");
        let drafted = over_rounds(&spans, names::DRAFT_LEN);
        assert_eq!(drafted, i64::from(statistics.drafted), "{method}");
        if method == "target-only" {
            let decoding = spans.all(names::DECODE);
            let reported = decoding.iter().map(|seen| seen.int(names::DECODED_TOKENS));
            assert_eq!(reported.collect::<Vec<_>>(), [Some(40), Some(40)]);
            let forwarded = spans.one(names::PREFILL).int(names::FORWARDED_TOKENS);
            let prompt = i64::from(answer.started.prompt_tokens);
            assert_eq!(forwarded, Some(prompt + 39), "but the last token");
        }
    }
}

/// The verifier sends distributions, and the coordinator decides: that is its share, and not the verifier's.
#[tokio::test]
async fn what_the_coordinator_decides_is_seen_there() {
    let services = Watched::start(|_| {}).await;
    let mut requested = requested().method("rejection");
    requested.set("accept_at", "coordinator");
    let answer = generate(&services.coordinator, requested).await;
    let spans = services.spans().await;
    check_trace(&spans);
    check_rounds(&spans, &answer);
    let accepting = spans.all(names::ACCEPT);
    assert!(!accepting.is_empty());
    for accept in accepting {
        assert_eq!(accept.service, "outrider-coordinator");
        let is_parent = |seen: &&Seen| seen.span.span_id == accept.span.parent_span_id;
        let verifying = spans.0.iter().find(is_parent).expect("a parent");
        let reported = (verifying.span.name.as_str(), verifying.span.kind);
        assert_eq!(reported, (names::VERIFY, 3));
    }
}

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

#[tokio::test]
async fn a_clients_trace_goes_on_through_the_services() {
    // The client has decided, whatever the ratio.
    let services = Watched::start(|telemetry| telemetry.sample_ratio = Some(0.0)).await;
    let parent = format!("00-{TRACE_ID}-b7ad6b7169203331-01");
    let answer = with_parent(&services.coordinator, requested(), &parent).await;
    let spans = services.spans().await;
    check_trace(&spans);
    check_rounds(&spans, &answer);
    let root = root(&spans);
    let bytes = |hexadecimal| {
        u128::from_str_radix(hexadecimal, 16)
            .expect("a number")
            .to_be_bytes()
    };
    assert_eq!(root.span.trace_id, bytes(TRACE_ID));
    assert_eq!(root.span.parent_span_id, bytes("b7ad6b7169203331")[8..]);
    let tells = |seen: &Seen| seen.texts().contains("somebody");
    assert!(!spans.0.iter().any(tells), "no baggage");
}

#[tokio::test]
async fn a_request_that_is_not_sampled_leaves_no_trace() {
    // The peers would trace whatever they are told of.
    let services = Watched::start(|telemetry| telemetry.sample_ratio = Some(0.0)).await;
    generate(&services.coordinator, requested()).await;
    let spans = services.spans().await;
    assert!(spans.0.is_empty(), "{:?}", spans.0);

    let services = Watched::start(|_| {}).await;
    let parent = format!("00-{TRACE_ID}-b7ad6b7169203331-00");
    with_parent(&services.coordinator, requested(), &parent).await;
    let spans = services.spans().await;
    assert!(spans.0.is_empty(), "the client has decided");
}

#[tokio::test]
async fn a_request_that_is_refused_is_one_failed_span() {
    let services = Watched::start(|_| {}).await;
    let wrong = request("Once upon a time", 0);
    let refused = try_generate(&services.coordinator, wrong).await;
    let refused = refused.expect_err("no tokens");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    let spans = services.spans().await;
    let root = spans.one("chat");
    assert!(root.has_failed());
    let error = root.text(names::ERROR_TYPE);
    assert_eq!(error.as_deref(), Some("InvalidArgument"));
    assert_eq!(spans.names_within(root), ["tokenize"]);
}
