//! The coordinator's figures, against what its answers say.

use wire::v1::{RequestTiming, SpeculationStatistics};

use super::{GEN_AI, Scrape};
use crate::client::{Answer, With, generate, request};
use crate::cluster::{Cluster, draft};

/// A count of one answer.
type Counted = fn(&SpeculationStatistics) -> u32;

#[tokio::test]
async fn figures_of_a_coordinator_are_the_sums_of_its_answers() {
    let cluster = Cluster::start(draft()).await;
    let coordinator = &cluster.coordinator;
    let mut answers: Vec<Answer> = Vec::new();
    for seed in 0..3 {
        let mut requested = request("Once upon a time", 40)
            .temperature(1.0)
            .seed(seed)
            .ignoring_eos();
        // Whether the client wants reports makes no difference.
        requested.report_rounds = seed == 0;
        // One with blocks longer than there are positions of their own.
        if seed == 2 {
            requested.set("draft_len", 24);
        }
        answers.push(generate(coordinator, requested).await);
    }
    let over = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 0.0;
    coordinator.shows("all requests are over", over).await;
    let scrape = coordinator.scrape();
    let labels = [("model", "default"), ("method", "coupled")];
    let total = |of: Counted| -> f64 {
        let counts = answers.iter().map(|answer| of(answer.statistics()));
        counts.map(f64::from).sum()
    };
    let counted: [(&str, Counted); 9] = [
        ("rounds_total", |s| s.num_spec_steps),
        ("draft_tokens_total", |s| s.num_draft_tokens),
        ("accepted_tokens_total", |s| s.num_accepted_draft_tokens),
        ("discarded_tokens_total", |s| s.discarded),
        ("target_forwards_total", |s| s.target_forwards),
        ("accepted_length_tokens_count", |s| s.num_spec_steps),
        ("accepted_length_tokens_sum", |s| {
            s.num_accepted_draft_tokens
        }),
        ("position_drafted_total", |s| s.num_draft_tokens),
        ("position_accepted_total", |s| s.num_accepted_draft_tokens),
    ];
    for (name, of) in counted {
        let reported = scrape.sum(&format!("outrider_{name}"), &[]);
        assert_eq!(reported, total(of), "{name}");
    }
    assert!(total(|s| s.num_accepted_draft_tokens) > 0.0);
    for name in ["requests_refused", "fallbacks", "retries"] {
        let reported = scrape.sum(&format!("outrider_{name}_total"), &[]);
        assert_eq!(reported, 0.0, "{name}");
    }
    let prompts = f64::from(answers[0].started.prompt_tokens) * 3.0;
    let outcome = [labels[0], labels[1], ("outcome", "length")];
    for (name, labels, expected) in [
        ("emitted_tokens_total", &labels[..], 120.0),
        ("prompt_tokens_total", &labels[..1], prompts),
        ("requests_total", &outcome, 3.0),
        ("requests_limit", &[], 256.0),
    ] {
        let reported = scrape.value(&format!("outrider_{name}"), labels);
        assert_eq!(reported, expected, "{name}");
    }
    times_agree(&scrape, &answers);
}

/// Histograms of times, against what the answers say.
fn times_agree(scrape: &Scrape, answers: &[Answer]) {
    let with_error = [&GEN_AI[..], &[("error_type", "")]].concat();
    let seconds = |of: fn(&RequestTiming) -> f64| -> f64 {
        let timings = answers.iter().map(|answer| answer.finished.timing);
        timings
            .map(|timing| of(&timing.expect("timing")) / 1e3)
            .sum()
    };
    let first = seconds(|timing| timing.time_to_first_token_ms);
    let total = seconds(|timing| timing.total_ms);
    for (name, labels, expected) in [
        ("time_to_first_token", &GEN_AI[..], first),
        ("request_duration", &with_error, total),
    ] {
        let value = |of: &str| scrape.value(&format!("gen_ai_server_{name}_seconds_{of}"), labels);
        assert_eq!(value("count"), 3.0, "{name}");
        // Taken a moment apart.
        let off = (value("sum") - expected).abs();
        assert!(
            off < 0.25 + expected * 0.1,
            "{name} is {off} off {expected}"
        );
    }
    let each = |of: &str| format!("gen_ai_server_time_per_output_token_seconds_{of}");
    assert_eq!(scrape.value(&each("count"), &GEN_AI), 3.0);
    let after_first = scrape.value(&each("sum"), &GEN_AI) * 36.0;
    assert!(after_first > 0.2 * (total - first) && after_first < 2.0 * (total - first));
    let waited: f64 = ["draft", "verify"]
        .map(|phase| scrape.sum("outrider_round_duration_seconds_sum", &[("phase", phase)]))
        .iter()
        .sum();
    assert!(waited > 0.0 && waited <= total);
}

#[tokio::test]
async fn what_only_some_requests_have_is_counted_of_those() {
    let cluster = Cluster::start(draft()).await;
    // What came at once has no time per token.
    generate(&cluster.coordinator, request("x", 1).ignoring_eos()).await;
    let scrape = cluster.coordinator.scrape();
    let count = |of: &str| scrape.find(&format!("gen_ai_server_{of}_seconds_count"), &GEN_AI);
    assert_eq!(count("time_to_first_token"), Some(1.0));
    assert_eq!(count("time_per_output_token"), None);
    // Deferral where a rule judges.
    let judged = request("Once upon a time", 40)
        .method("spec-cascade")
        .with("rule", "token-v1")
        .with("alpha", 0.3);
    let answer = generate(&cluster.coordinator, judged.ignoring_eos()).await;
    let rate = answer.statistics().deferral_rate.expect("a rule judged");
    let before = cluster.coordinator.scrape();
    let positions = |of: &str| before.sum(&format!("outrider_{of}_positions_total"), &[]);
    assert!((positions("deferred") / positions("judged") - rate).abs() < 1e-6);
    // Positions of a tree are its levels.
    let tree = request("Once upon a time", 40).draft_len(3).ignoring_eos();
    let tree = tree.with("tree", "comb:4");
    let answer = generate(&cluster.coordinator, tree).await;
    let statistics = answer.statistics();
    let drafted = statistics.per_step_drafted.iter();
    let levels: u32 = drafted.map(|nodes| nodes.div_ceil(4)).sum();
    let accepted: u32 = statistics.per_step_accepted.iter().sum();
    let after = cluster.coordinator.scrape();
    for (what, expected) in [("drafted", levels), ("accepted", accepted)] {
        let name = format!("outrider_position_{what}_total");
        let reported = after.sum(&name, &[]) - before.sum(&name, &[]);
        assert!(
            expected > 0 && reported == f64::from(expected),
            "{what}: {reported}"
        );
    }
}
