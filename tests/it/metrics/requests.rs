//! The coordinator's figures, against what its answers say.

use wire::v1::{GenerateRequest, MethodParameters, RequestTiming, SpeculationStatistics};

use super::openmetrics::Scrape;
use super::{Cluster, GEN_AI, by_position};
use crate::client::{Answer, With, generate, request};

/// A count of one answer.
type Counted = fn(&SpeculationStatistics) -> u32;

#[tokio::test]
async fn figures_of_a_coordinator_are_the_sums_of_its_answers() {
    let cluster = Cluster::start().await;
    let coordinator = &cluster.coordinator;
    let mut answers: Vec<Answer> = Vec::new();
    for seed in 0..3 {
        let mut asked = request("Once upon a time", 40)
            .temperature(1.0)
            .seed(seed)
            .ignoring_eos();
        // Whether the client wants reports makes no difference.
        asked.report_rounds = seed == 0;
        // One with blocks longer than there are positions of their own.
        asked.draft_len = (seed == 2).then_some(24);
        answers.push(generate(&coordinator.service, asked).await);
    }
    let scrape = coordinator.scrape().await;
    let labels = [("model", "default"), ("method", "coupled")];
    let value = |name: &str| scrape.value(name, &labels);
    let total = |of: Counted| -> f64 {
        answers
            .iter()
            .map(|answer| f64::from(of(answer.statistics())))
            .sum()
    };
    assert!(
        total(|s| s.num_accepted_draft_tokens) > 0.0,
        "there is something to count"
    );
    let counted: [(&str, Counted); 5] = [
        ("rounds", |s| s.num_spec_steps),
        ("draft_tokens", |s| s.num_draft_tokens),
        ("accepted_tokens", |s| s.num_accepted_draft_tokens),
        ("discarded_tokens", |s| s.discarded),
        ("target_forwards", |s| s.target_forwards),
    ];
    for (name, of) in counted {
        assert_eq!(
            value(&format!("outrider_{name}_total")),
            total(of),
            "{name}"
        );
    }
    assert_eq!(value("outrider_emitted_tokens_total"), 120.0);
    let prompts = f64::from(answers[0].started.prompt_tokens) * 3.0;
    assert_eq!(
        scrape.value("outrider_prompt_tokens_total", &labels[..1]),
        prompts
    );

    let drafted = answers
        .iter()
        .flat_map(|answer| &answer.statistics().per_step_drafted);
    let accepted = || {
        answers
            .iter()
            .flat_map(|answer| &answer.statistics().per_step_accepted)
    };
    for (name, expected) in [
        ("outrider_position_drafted_total", by_position(drafted)),
        ("outrider_position_accepted_total", by_position(accepted())),
    ] {
        for (position, count) in expected {
            let labels = [labels[0], ("position", position.as_str())];
            assert_eq!(
                scrape.value(name, &labels),
                f64::from(count),
                "{name} {position}"
            );
        }
    }
    let lengths = "outrider_accepted_length_tokens";
    assert_eq!(
        value(&format!("{lengths}_count")),
        total(|s| s.num_spec_steps)
    );
    assert_eq!(
        value(&format!("{lengths}_sum")),
        total(|s| s.num_accepted_draft_tokens)
    );
    for bound in [0, 3, 8] {
        let le = format!("{bound}.0");
        let within = accepted().filter(|&&len| len <= bound).count();
        let labels = [labels[0], labels[1], ("le", le.as_str())];
        assert_eq!(
            scrape.value(&format!("{lengths}_bucket"), &labels),
            within as f64
        );
    }

    let outcomes = [labels[0], labels[1], ("outcome", "length")];
    assert_eq!(scrape.value("outrider_requests_total", &outcomes), 3.0);
    assert_eq!(scrape.sum("outrider_requests_total", &[]), 3.0);
    assert_eq!(scrape.value("outrider_requests_limit", &[]), 256.0);
    let over = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 0.0;
    coordinator.eventually("all requests are over", over).await;
    times_agree(&scrape, &answers);
    nothing_went_wrong(&scrape);
}

/// Nothing was refused, lost or tried again.
fn nothing_went_wrong(scrape: &Scrape) {
    for name in [
        "outrider_requests_refused_total",
        "outrider_fallbacks_total",
        "outrider_retries_total",
    ] {
        assert_eq!(scrape.sum(name, &[]), 0.0, "{name}");
    }
}

/// Histograms of times, against what the answers say.
fn times_agree(scrape: &Scrape, answers: &[Answer]) {
    let with_error = [&GEN_AI[..], &[("error_type", "")]].concat();
    let timing = |answer: &Answer| answer.finished.timing.expect("timing");
    let seconds = |of: fn(&RequestTiming) -> f64| -> f64 {
        answers.iter().map(|answer| of(&timing(answer)) / 1e3).sum()
    };
    let near = |name: &str, labels: &[(&str, &str)], expected: f64| {
        assert_eq!(
            scrape.value(&format!("{name}_count"), labels),
            3.0,
            "{name}"
        );
        let sum = scrape.value(&format!("{name}_sum"), labels);
        // Taken a moment apart.
        assert!(
            (sum - expected).abs() < 0.25 + expected * 0.1,
            "{name}: {sum}, not {expected}"
        );
    };
    let (first, total) = (
        seconds(|timing| timing.time_to_first_token_ms),
        seconds(|timing| timing.total_ms),
    );
    near("gen_ai_server_time_to_first_token_seconds", &GEN_AI, first);
    near("gen_ai_server_request_duration_seconds", &with_error, total);
    let each = "gen_ai_server_time_per_output_token_seconds";
    assert_eq!(scrape.value(&format!("{each}_count"), &GEN_AI), 3.0);
    let after_first = scrape.value(&format!("{each}_sum"), &GEN_AI) * 36.0;
    assert!(after_first > 0.2 * (total - first) && after_first < 2.0 * (total - first));

    let rounds: u32 = answers
        .iter()
        .map(|answer| answer.statistics().num_spec_steps)
        .sum();
    let phase = |phase: &str, suffix: &str| {
        let name = format!("outrider_round_duration_seconds_{suffix}");
        scrape.value(&name, &[("model", "default"), ("phase", phase)])
    };
    for asked in ["draft", "verify"] {
        let count = phase(asked, "count");
        assert!(count >= f64::from(rounds), "{asked}: {count} of {rounds}");
        let parts: f64 = ["queue", "forward"]
            .map(|part| phase(&format!("{asked}_{part}"), "sum"))
            .iter()
            .sum();
        assert!(parts > 0.0 && parts <= phase(asked, "sum"), "{asked}");
    }
    let waited = phase("draft", "sum") + phase("verify", "sum");
    assert!(phase("wire", "sum") > 0.0 && phase("wire", "sum") < waited);
    assert!(waited <= total);
}

#[tokio::test]
async fn deferral_is_counted_where_a_rule_judges() {
    let cluster = Cluster::start().await;
    let asked = GenerateRequest {
        parameters: Some(MethodParameters {
            rule: Some("token-v1".to_owned()),
            alpha: Some(0.3),
            ..Default::default()
        }),
        ..request("Once upon a time", 40)
            .method("spec-cascade")
            .ignoring_eos()
    };
    let answer = generate(&cluster.coordinator.service, asked).await;
    let rate = answer.statistics().deferral_rate.expect("a rule judged");
    let scrape = cluster.coordinator.scrape().await;
    let labels = [("model", "default"), ("method", "spec-cascade")];
    let judged = scrape.value("outrider_judged_positions_total", &labels);
    let deferred = scrape.value("outrider_deferred_positions_total", &labels);
    assert!(judged > 0.0);
    assert!(
        (deferred / judged - rate).abs() < 1e-6,
        "{deferred} of {judged}, not {rate}"
    );
}
