use super::*;
use crate::metrics::{Metrics, names};

fn with_aliases(metrics: &Metrics) -> String {
    let mut text = metrics.encode().expect("text");
    add(&mut text);
    text
}

/// Metrics of a process with a coordinator and a verifier.
fn counted() -> Metrics {
    let metrics = Metrics::default();
    let counter = |metric, labels: &[&str], value| metrics.counter(metric, labels).inc_by(value);
    counter(&names::PROMPT_TOKENS, &["m"], 9.0);
    counter(&names::EMITTED_TOKENS, &["m", "coupled"], 5.0);
    counter(&names::EMITTED_TOKENS, &["m", "block"], 2.0);
    counter(&names::REQUESTS, &["m", "coupled", "stop"], 3.0);
    counter(&names::REQUESTS, &["m", "coupled", "cancelled"], 1.0);
    counter(&names::POSITION_ACCEPTED, &["m", "1"], 4.0);
    counter(&names::POSITION_ACCEPTED, &["m", "21+"], 8.0);
    let first = metrics.histogram(&names::TIME_TO_FIRST_TOKEN, &["chat", "outrider", "m"]);
    first.observe(0.05);
    first.observe(1e6);
    metrics.sample(|samples| {
        samples.add(&names::REQUESTS_RUNNING, &[], 6.0);
        for (role, tokens) in [("verifier", 20.0), ("drafter", 90.0)] {
            samples.add(&names::ENGINE_RUNNING, &[role], 2.0);
            samples.add(&names::ENGINE_QUEUE, &[role], 7.0);
            samples.add(&names::KV_TOKENS, &[role], tokens);
            samples.add(&names::KV_BUDGET_TOKENS, &[role], 80.0);
            samples.add(&names::PREFILL_TOKENS, &[role], 30.0);
            samples.add(&names::SHARED_TOKENS, &[role], 10.0);
        }
        Some(())
    });
    metrics
}

#[test]
fn each_alias_is_summed_over_what_vllm_does_not_tell_apart() {
    let text = with_aliases(&counted());
    for line in [
        "vllm:num_requests_running{model_name=\"m\"} 6.0",
        "vllm:num_requests_waiting{model_name=\"m\"} 7.0",
        "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.25",
        "vllm:prompt_tokens_total{model_name=\"m\"} 9.0",
        "vllm:generation_tokens_total{model_name=\"m\"} 7.0",
        "vllm:request_success_total{model_name=\"m\",finished_reason=\"stop\"} 3.0",
        "vllm:request_success_total{model_name=\"m\",finished_reason=\"abort\"} 1.0",
        "vllm:prefix_cache_queries_total{model_name=\"m\"} 40.0",
        "vllm:prefix_cache_hits_total{model_name=\"m\"} 10.0",
        "vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name=\"m\",position=\"0\"} 4.0",
        "vllm:time_to_first_token_seconds_count{model_name=\"m\"} 2.0",
        "vllm:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 2.0",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    assert!(
        !text.contains("position=\"20"),
        "those beyond stand together: {text}"
    );
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn each_is_made_of_a_metric_that_there_is() {
    let known = names::ALL.iter().flat_map(|metric| {
        let total = format!("{}_total", metric.name);
        [metric.name.to_owned(), total]
    });
    let known: Vec<_> = known.collect();
    for alias in ALIASES {
        for of in alias.of {
            assert!(known.iter().any(|name| name == of), "{of}");
        }
    }
}

#[test]
fn a_verifier_by_itself_tells_its_engine_under_its_models_name() {
    let metrics = Metrics::default();
    metrics.sample(|samples| {
        samples.add(&names::ENGINE_RUNNING, &["verifier"], 3.0);
        samples.add(&names::MODEL_LOAD, &["verifier", "big"], 1.0);
        Some(())
    });
    let text = with_aliases(&metrics);
    assert!(
        text.contains("vllm:num_requests_running{model_name=\"big\"} 3.0\n"),
        "{text}"
    );
    assert!(!text.contains("vllm:num_requests_waiting"), "{text}");
}
