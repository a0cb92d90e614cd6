//! What came of a request beside its text: usage, the method in effect, and how speculation went.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use wire::v1;

use super::output::OutputProgress;

/// Returns the tokens used by `outputs`, of which each prompt has `choices`.
pub(super) fn usage(outputs: &[&OutputProgress], choices: usize) -> Value {
    let prompts = outputs.iter().step_by(choices.max(1));
    let prompt: u32 = prompts.map(|output| output.started.prompt_tokens).sum();
    let completion: usize = outputs.iter().map(|output| output.tokens).sum();
    let mut usage = json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt as usize + completion,
    });
    let sum = |of: fn(&v1::Usage) -> u32| -> u32 {
        let used = outputs.iter().filter_map(|output| output.used());
        used.map(of).sum()
    };
    let details = [
        ("reasoning_tokens", sum(|used| used.reasoning_tokens)),
        (
            "accepted_prediction_tokens",
            sum(|used| used.accepted_prediction_tokens),
        ),
        (
            "rejected_prediction_tokens",
            sum(|used| used.rejected_prediction_tokens),
        ),
    ];
    let details = details.into_iter().filter(|(_, tokens)| *tokens > 0);
    let details: Map<_, _> = details
        .map(|(name, tokens)| (name.to_owned(), json!(tokens)))
        .collect();
    if !details.is_empty() {
        usage["completion_tokens_details"] = Value::Object(details);
    }
    let cached = cached_tokens(outputs, choices);
    if cached > 0 {
        usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    usage
}

/// Returns how many tokens of the prompts of `outputs` were not computed, of which each prompt has `choices`.
pub(super) fn cached_tokens(outputs: &[&OutputProgress], choices: usize) -> u32 {
    let prompts = outputs.iter().step_by(choices.max(1));
    let used = prompts.filter_map(|output| output.used());
    used.map(|used| used.cached_prompt_tokens).sum()
}

/// Adds what could not be had as it was asked for, if there is anything: what the front left out, and what the outputs say.
pub(super) fn warn(answer: &mut Value, left_out: &[String], outputs: &[&OutputProgress]) {
    let of_output = outputs.first().map(|output| &output.started.warnings);
    let warnings: Vec<_> = left_out
        .iter()
        .chain(of_output.into_iter().flatten())
        .collect();
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
}

/// Adds to `answer` what was in effect and how speculation went, of outputs that are whole; and the usage, `with_usage`.
pub(super) fn add(
    answer: &mut Value,
    outputs: &[&OutputProgress],
    choices: usize,
    with_usage: bool,
) {
    let mut usage = usage(outputs, choices);
    if let Some(first) = outputs.first() {
        let effective = effective(&first.finished);
        usage["speculation"] = effective.clone();
        answer["speculation"] = effective;
    }
    if with_usage {
        answer["usage"] = usage;
    }
    let statistics = outputs
        .iter()
        .filter_map(|output| output.finished.speculation.as_ref());
    let statistics: Vec<_> = statistics.collect();
    answer["metrics"] = json!({ "speculative_decoding": speculative_decoding(&statistics) });
    answer["timings"] = timings(outputs, &statistics);
}

/// Returns the method, its axes and its parameters, as they were in the end.
fn effective(finished: &v1::Finished) -> Value {
    let settings: Map<_, _> = finished
        .settings
        .iter()
        .map(|setting| (setting.name.clone(), json!(setting.value)))
        .collect();
    json!({
        "method": finished.effective_method,
        "settings": settings,
        "seed": finished.seed,
        "lossless": finished.lossless,
        "reproducible": finished.reproducible,
        "exact": finished.exact,
    })
}

/// Returns how speculation went, under the names that users of vLLM read.
fn speculative_decoding(statistics: &[&v1::SpeculationStatistics]) -> Value {
    let sum = |of: fn(&v1::SpeculationStatistics) -> u32| -> u32 {
        statistics.iter().map(|of_output| of(of_output)).sum()
    };
    let steps = sum(|of| of.num_spec_steps);
    let drafted = sum(|of| of.num_draft_tokens);
    let accepted = sum(|of| of.num_accepted_draft_tokens);
    let fallbacks = statistics.iter().flat_map(|of| &of.fallbacks);
    let reasons: BTreeSet<_> = fallbacks.map(|it| it.reason.as_str()).collect();
    let per = |part: u32, whole: u32| (whole > 0).then(|| f64::from(part) / f64::from(whole));
    json!({
        "num_spec_steps": steps,
        "num_draft_tokens": drafted,
        "num_accepted_draft_tokens": accepted,
        "mean_acceptance_length": per(accepted, steps).map(|mean| 1.0 + mean),
        "draft_acceptance_rate": per(accepted, drafted),
        "fallback_reasons": reasons,
    })
}

/// Returns the times of the first output, under the names that users of llama.cpp read.
fn timings(outputs: &[&OutputProgress], statistics: &[&v1::SpeculationStatistics]) -> Value {
    let Some(first) = outputs.first() else {
        return Value::Null;
    };
    let timing = first.finished.timing.unwrap_or_default();
    let (prompt, predicted) = (first.started.prompt_tokens, first.tokens);
    let first_ms = timing.time_to_first_token_ms;
    let rest_ms = (timing.total_ms - first_ms).max(0.0);
    let per_second = |tokens: f64, ms: f64| if ms > 0.0 { tokens / ms * 1e3 } else { 0.0 };
    json!({
        "prompt_n": prompt,
        "prompt_ms": first_ms,
        "prompt_per_second": per_second(prompt.into(), first_ms),
        "predicted_n": predicted,
        "predicted_ms": rest_ms,
        "predicted_per_second": per_second(predicted.saturating_sub(1) as f64, rest_ms),
        "draft_n": statistics.first().map(|of| of.num_draft_tokens),
        "draft_n_accepted": statistics.first().map(|of| of.num_accepted_draft_tokens),
    })
}
