//! The answer as one JSON object.

use std::io::Write;

use anstream::{eprintln, stdout};
use serde_json::{Value, json};
use tonic::Code;
use wire::v1;

use super::terminal::round_line;
use super::{Answer, Printer};

/// Prints the answer when it is finished.
pub(super) struct Json;

/// Name of an origin, as in the JSON.
fn origin_name(origin: i32) -> &'static str {
    match v1::Origin::try_from(origin) {
        Ok(v1::Origin::Accepted) => "accepted",
        Ok(v1::Origin::Recovered) => "recovered",
        Ok(v1::Origin::Bonus) => "bonus",
        Ok(v1::Origin::Target) => "target",
        Ok(v1::Origin::Deferred) => "deferred",
        Ok(v1::Origin::Unspecified) | Err(_) => "unknown",
    }
}

fn reason_name(reason: v1::FinishReason) -> &'static str {
    match reason {
        v1::FinishReason::Stop => "stop",
        v1::FinishReason::Length => "length",
        v1::FinishReason::Cancelled => "cancelled",
        v1::FinishReason::Error | v1::FinishReason::Unspecified => "error",
    }
}

impl Printer for Json {
    fn chunk(&mut self, _: &v1::Chunk) -> anyhow::Result<()> {
        Ok(())
    }

    fn round(&mut self, round: &v1::RoundReport) {
        eprintln!("{}", round_line(round));
    }

    fn finished(&mut self, answer: &Answer) -> anyhow::Result<()> {
        writeln!(stdout(), "{}", object(answer))?;
        Ok(())
    }
}

/// The whole answer.
fn object(answer: &Answer) -> Value {
    let (started, finished) = (&answer.started, &answer.finished);
    let usage = finished.usage.unwrap_or_default();
    let timing = finished.timing.unwrap_or_default();
    let error = match finished.error.as_str() {
        "" => Value::Null,
        error => {
            let code = Code::from(finished.error_code as i32);
            json!({ "message": error, "code": format!("{code:?}") })
        }
    };
    let origins: Vec<_> = answer.origins.iter().copied().map(origin_name).collect();
    let settings: serde_json::Map<String, Value> = finished
        .settings
        .iter()
        .map(|setting| (setting.name.clone(), json!(setting.value)))
        .collect();
    let statistics = finished.speculation.clone().unwrap_or_default();
    let speculation = speculation(&statistics);
    let most = json!(num_spec_tokens(&finished.settings));
    let of_vllm = OF_VLLM.map(|name| (name, speculation.get(name).unwrap_or(&most).clone()));
    let mut object = json!({
        "text": answer.text,
        "token_ids": answer.token_ids,
        "origins": origins,
        "finish_reason": reason_name(finished.reason()),
        "error": error,
        "method": started.method,
        "effective_method": finished.effective_method,
        "settings": settings,
        "exact": finished.exact,
        "lossless": finished.lossless,
        "reproducible": finished.reproducible,
        "model": started.model,
        "request_id": started.request_id,
        "seed": finished.seed,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
        "speculation": speculation,
        "metrics": { "speculative_decoding": Value::from_iter(of_vllm) },
        "timing": {
            "time_to_first_token_ms": timing.time_to_first_token_ms,
            "total_ms": timing.total_ms,
            "tokens_per_second": timing.tokens_per_second,
        },
    });
    if !answer.logprobs.is_empty() {
        object["logprobs"] = answer.logprobs.iter().map(logprobs).collect();
    }
    object
}

/// The log probabilities of a token; null stands for one without any probability.
fn logprobs(of_token: &v1::TokenLogprobs) -> Value {
    let top = of_token.top.iter();
    let top = top.map(|top| json!({ "token_id": top.token_id, "logprob": top.logprob }));
    json!({ "logprob": of_token.logprob, "top": top.collect::<Vec<_>>() })
}

/// What of the statistics has the names that users of vLLM parse.
const OF_VLLM: [&str; 9] = [
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "acceptance_histogram",
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
    "per_step_accepted",
    "per_step_drafted",
];

/// Most draft tokens of a round, as set; 0 where the method drafts no blocks.
fn num_spec_tokens(settings: &[v1::Setting]) -> u32 {
    let number = |name: &str| {
        let setting = settings.iter().find(|setting| setting.name == name)?;
        setting.value.parse().ok()
    };
    number("draft_cap")
        .or_else(|| number("draft_len"))
        .unwrap_or(0)
}

fn speculation(statistics: &v1::SpeculationStatistics) -> Value {
    let reasons: Vec<Value> = statistics
        .fallbacks
        .iter()
        .map(|fallback| json!({ "position": fallback.position, "reason": fallback.reason }))
        .collect();
    // Where no draft token was verified there is nothing to be a rate of.
    let verified = |figure: f64| (statistics.num_draft_tokens > 0).then_some(figure);
    json!({
        "mean_acceptance_length": verified(statistics.mean_acceptance_length),
        "draft_acceptance_rate": verified(statistics.draft_acceptance_rate),
        "acceptance_histogram": statistics.acceptance_histogram,
        "num_spec_steps": statistics.num_spec_steps,
        "num_accepted_draft_tokens": statistics.num_accepted_draft_tokens,
        "num_draft_tokens": statistics.num_draft_tokens,
        "per_step_accepted": statistics.per_step_accepted,
        "per_step_drafted": statistics.per_step_drafted,
        "fallbacks": reasons.len(),
        "fallback_reasons": reasons,
        "target_forwards": statistics.target_forwards,
        "drafted": statistics.drafted,
        "discarded": statistics.discarded,
        "withheld": statistics.withheld,
        "retries": statistics.retries,
        "migrations": statistics.migrations,
        "deferral_rate": statistics.deferral_rate,
        "rejection_rate": statistics.rejection_rate,
        "draft_forwards": statistics.draft_forwards,
        "draft_forwards_by_model": statistics.draft_forwards_by_model,
        "forced": statistics.forced,
        "target_calls_per_token": statistics.target_calls_per_token,
        "wire_bytes": statistics.wire_bytes,
        "wire_bytes_per_round": statistics.wire_bytes_per_round,
        "rounds": statistics.rounds,
        "fallback_tokens": statistics.fallback_tokens,
        "rested_tokens": statistics.rested_tokens,
        "predicted_gain": statistics.predicted_gain,
        "measured_gain": statistics.measured_gain,
        "length_decision": statistics.length_decision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_failed_tells_so_where_other_failures_do() {
        let finished = v1::Finished {
            reason: v1::FinishReason::Error.into(),
            error: "no verifier is reachable".to_owned(),
            error_code: Code::Unavailable as u32,
            ..v1::Finished::default()
        };
        let answer = Answer {
            text: "Once".to_owned(),
            finished,
            ..Answer::default()
        };
        let object = object(&answer);
        let error = json!({ "message": "no verifier is reachable", "code": "Unavailable" });
        assert_eq!(
            (&object["error"], &object["text"]),
            (&error, &json!("Once"))
        );
        assert!(super::object(&Answer::default())["error"].is_null());
    }
}
