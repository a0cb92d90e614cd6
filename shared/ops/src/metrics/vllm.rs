//! Aliases of metrics under the names of vLLM, for dashboards and gateways that read those.
//!
//! They are made of the text that [`Metrics::encode`](super::Metrics::encode) writes, so that nothing is counted twice
//! and nothing is counted for them while they are switched off.

use std::fmt::Write;

use super::exposition::{TextSample, samples};

/// A metric of vLLM, and what it is made of.
struct Alias {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// Names of the samples of ours that are summed. The names of histograms lack `_bucket`, `_sum` and `_count`.
    of: &'static [&'static str],
}

/// The numerator and the denominator of the one alias that is a quotient.
const USAGE: (&str, &str) = ("outrider_kv_used_tokens", "outrider_kv_budget_tokens");

/// Requests under way as a coordinator counts them, and as the engine of a verifier does.
const RUNNING: [&str; 2] = ["outrider_requests_running", "outrider_engine_running"];

#[rustfmt::skip]
const ALIASES: &[Alias] = &[
    Alias { name: "vllm:num_requests_running", kind: "gauge", help: "Requests under way", of: &RUNNING },
    Alias { name: "vllm:num_requests_waiting", kind: "gauge", help: "Requests that wait for the engine", of: &["outrider_engine_queue"] },
    Alias { name: "vllm:kv_cache_usage_perc", kind: "gauge", help: "Share of the tokens in memory, 0 to 1", of: &[USAGE.0] },
    Alias { name: "vllm:time_to_first_token_seconds", kind: "histogram", help: "From arrival to the first token", of: &["gen_ai_server_time_to_first_token_seconds"] },
    Alias { name: "vllm:inter_token_latency_seconds", kind: "histogram", help: "Mean time of each further token of a request", of: &["gen_ai_server_time_per_output_token_seconds"] },
    Alias { name: "vllm:e2e_request_latency_seconds", kind: "histogram", help: "From arrival to the last token", of: &["gen_ai_server_request_duration_seconds"] },
    Alias { name: "vllm:prompt_tokens", kind: "counter", help: "Tokens of prompts", of: &["outrider_prompt_tokens_total"] },
    Alias { name: "vllm:generation_tokens", kind: "counter", help: "Output tokens", of: &["outrider_emitted_tokens_total"] },
    Alias { name: "vllm:request_success", kind: "counter", help: "Requests that ended, by why", of: &["outrider_requests_total"] },
    Alias { name: "vllm:prefix_cache_queries", kind: "counter", help: "Tokens of prompts that were looked for in memory", of: &["outrider_prefill_tokens_total", "outrider_shared_prefix_tokens_total"] },
    Alias { name: "vllm:prefix_cache_hits", kind: "counter", help: "Those that were there", of: &["outrider_shared_prefix_tokens_total"] },
    Alias { name: "vllm:spec_decode_num_drafts", kind: "counter", help: "Draft blocks verified", of: &["outrider_rounds_total"] },
    Alias { name: "vllm:spec_decode_num_draft_tokens", kind: "counter", help: "Draft tokens verified", of: &["outrider_draft_tokens_total"] },
    Alias { name: "vllm:spec_decode_num_accepted_tokens", kind: "counter", help: "Draft tokens accepted", of: &["outrider_accepted_tokens_total"] },
    Alias { name: "vllm:spec_decode_num_accepted_tokens_per_pos", kind: "counter", help: "Draft tokens accepted, by position from 0", of: &["outrider_position_accepted_total"] },
];

/// Adds the aliases to `text`, OpenMetrics that ends in `# EOF`.
pub(super) fn add(text: &mut String) {
    let written = aliases(&samples(text));
    let end = text.rfind("# EOF").unwrap_or(text.len());
    text.insert_str(end, &written);
}

fn aliases(samples: &[TextSample<'_>]) -> String {
    let only_model = only_model(samples);
    let is_coordinator = samples.iter().any(|sample| sample.name == RUNNING[0]);
    let mut text = String::new();
    for alias in ALIASES {
        // Samples keep their order, so that buckets stay sorted.
        let mut family: Vec<(String, f64)> = Vec::new();
        for sample in samples {
            let Some(ending) = ending(alias, sample.name) else {
                continue;
            };
            if sample.name == RUNNING[1] && is_coordinator {
                continue;
            }
            let Some(labels) = labels(sample, only_model) else {
                continue;
            };
            let value = if sample.name == USAGE.0 {
                sample.value / budget(samples).max(1.0)
            } else {
                sample.value
            };
            let key = format!("{}{ending}{{{labels}}}", alias.name);
            match family.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sum)) => *sum += value,
                None => family.push((key, value)),
            }
        }
        if family.is_empty() {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {} {}.", alias.name, alias.help);
        let _ = writeln!(text, "# TYPE {} {}", alias.name, alias.kind);
        for (key, value) in family {
            let _ = writeln!(text, "{key} {value:?}");
        }
    }
    text
}

/// Returns the suffix of the alias's sample that is made of our sample `name`; none if it is made of others.
fn ending<'a>(alias: &Alias, name: &'a str) -> Option<&'a str> {
    alias.of.iter().find_map(|of| match alias.kind {
        "counter" => (name == *of).then_some("_total"),
        "histogram" => {
            let ending = name.strip_prefix(of)?;
            ["_bucket", "_sum", "_count"]
                .contains(&ending)
                .then_some(ending)
        }
        _ => (name == *of).then_some(""),
    })
}

/// Returns the labels of an alias. None for samples that have no alias: those of a drafter's engine, and of positions
/// that are counted together.
fn labels(sample: &TextSample<'_>, only_model: &str) -> Option<String> {
    let mut model = only_model;
    let mut others = String::new();
    for &(name, value) in &sample.labels {
        let _ = match name {
            "role" if value != "verifier" => return None,
            "model" | "gen_ai_request_model" => {
                model = value;
                Ok(())
            }
            "le" => write!(others, ",le=\"{value}\""),
            "position" => {
                let position = value.parse::<u32>().ok()?.checked_sub(1)?;
                write!(others, ",position=\"{position}\"")
            }
            "outcome" => {
                let reason = match value {
                    "stop" | "length" => value,
                    "cancelled" => "abort",
                    _ => "error",
                };
                write!(others, ",finished_reason=\"{reason}\"")
            }
            _ => Ok(()),
        };
    }
    Some(format!("model_name=\"{model}\"{others}"))
}

/// Returns the model that samples without a model are labelled with: the coordinator's, if it serves one model, or
/// else the verifier's. Empty if there are several.
fn only_model<'a>(samples: &[TextSample<'a>]) -> &'a str {
    let model = |sample: &TextSample<'a>| sample.label("model");
    let of_coordinator = samples
        .iter()
        .filter(|it| it.name == "outrider_prompt_tokens_total");
    let mut models = of_coordinator.filter_map(model);
    match (models.next(), models.next()) {
        (Some(only), None) => return only,
        (Some(_), Some(_)) => return "",
        (None, _) => {}
    }
    let loaded = samples
        .iter()
        .filter(|it| it.name == "outrider_model_load_seconds");
    let mut of_verifier = loaded.filter(|it| it.label("role") == Some("verifier"));
    of_verifier.find_map(model).unwrap_or("")
}

fn budget(samples: &[TextSample<'_>]) -> f64 {
    let of_verifier = |sample: &&TextSample<'_>| {
        sample.name == USAGE.1 && sample.label("role") == Some("verifier")
    };
    samples
        .iter()
        .filter(of_verifier)
        .map(|sample| sample.value)
        .sum()
}

#[cfg(test)]
mod tests;
