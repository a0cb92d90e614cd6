//! The answer as one JSON object.

use std::io::Write;

use anstream::{eprintln, stdout};
use client::CollectedAnswer;
use serde_json::{Value, json};
use tonic::Code;
use wire::v1;

use super::{AnswerFault, Printer};

/// Prints the answer when it has ended.
pub(super) struct AnswerJson;

/// Returns the name of an origin: the protocol's, in small letters.
fn origin_name(origin: v1::Origin) -> String {
    if origin == v1::Origin::Unspecified {
        return "unknown".to_owned();
    }
    let name = origin.as_str_name();
    name.trim_start_matches("ORIGIN_").to_lowercase()
}

fn reason_name(answer: &CollectedAnswer, fault: Option<&AnswerFault>) -> &'static str {
    match answer.finished.reason() {
        v1::FinishReason::Unspecified if fault.is_some_and(|it| it.code == Code::Cancelled) => {
            "cancelled"
        }
        v1::FinishReason::Stop => "stop",
        v1::FinishReason::Length => "length",
        v1::FinishReason::ToolCalls => "tool_calls",
        v1::FinishReason::Cancelled => "cancelled",
        v1::FinishReason::Error | v1::FinishReason::Unspecified => "error",
    }
}

impl Printer for AnswerJson {
    fn chunk(&mut self, _: &v1::Chunk) -> anyhow::Result<()> {
        Ok(())
    }

    fn note(&mut self, line: &str) {
        eprintln!("{line}");
    }

    fn ended(
        &mut self,
        answer: &CollectedAnswer,
        fault: Option<&AnswerFault>,
    ) -> anyhow::Result<()> {
        writeln!(stdout(), "{}", object(answer, fault))?;
        Ok(())
    }
}

/// Keys of the object whose values come with the last message of an answer.
const OF_THE_END: [&str; 7] = [
    "effective_method",
    "settings",
    "exact",
    "lossless",
    "speculation",
    "metrics",
    "timing",
];

/// Returns the object of an answer that is complete, or that `fault` ended early.
fn object(answer: &CollectedAnswer, fault: Option<&AnswerFault>) -> Value {
    let (started, finished) = (&answer.started, &answer.finished);
    let error = fault.map(|fault| {
        let code = format!("{:?}", fault.code);
        json!({ "message": fault.message, "code": code })
    });
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
        "finish_reason": reason_name(answer, fault),
        "error": error,
        "method": started.method,
        "effective_method": finished.effective_method,
        "settings": settings,
        "exact": finished.exact,
        "lossless": finished.lossless,
        "reproducible": finished.reproducible || started.reproducible,
        "model": started.model,
        "request_id": started.request_id,
        "seed": started.seed,
        "resumes": answer.resumes,
        "usage": {
            "prompt_tokens": started.prompt_tokens,
            "completion_tokens": answer.token_ids.len(),
        },
        "speculation": speculation,
        "metrics": { "speculative_decoding": Value::from_iter(of_vllm) },
        "timing": finished.timing.unwrap_or_default(),
    });
    let used = finished.usage.unwrap_or_default();
    for (name, tokens) in [
        (
            "accepted_prediction_tokens",
            used.accepted_prediction_tokens,
        ),
        (
            "rejected_prediction_tokens",
            used.rejected_prediction_tokens,
        ),
        ("cached_prompt_tokens", used.cached_prompt_tokens),
    ] {
        if tokens > 0 {
            object["usage"][name] = json!(tokens);
        }
    }
    if !answer.reasoning.is_empty() {
        object["reasoning"] = json!(answer.reasoning);
    }
    if !answer.tool_calls.is_empty() {
        let calls = answer.tool_calls.iter();
        let calls = calls
            .map(|call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments }));
        object["tool_calls"] = calls.collect();
    }
    if !answer.logprobs.is_empty() {
        object["logprobs"] = answer.logprobs.iter().map(logprobs).collect();
    }
    if !answer.is_whole() {
        for key in OF_THE_END {
            object[key] = Value::Null;
        }
    }
    object
}

/// Returns the log probabilities of a token; null stands for one without any probability.
fn logprobs(of_token: &v1::TokenLogprobs) -> Value {
    json!({ "logprob": of_token.logprob, "top": of_token.top })
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

/// Returns the most draft tokens of a round, as set; 0 where the method drafts no blocks.
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
    let mut told = json!(statistics);
    if statistics.num_draft_tokens == 0 {
        // Where no draft token was verified there is nothing to be a rate of.
        told["mean_acceptance_length"] = Value::Null;
        told["draft_acceptance_rate"] = Value::Null;
    }
    told["fallback_reasons"] = told["fallbacks"].take();
    told["fallbacks"] = json!(statistics.fallbacks.len());
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> CollectedAnswer {
        let started = v1::Started {
            seed: 7,
            prompt_tokens: 3,
            ..v1::Started::default()
        };
        CollectedAnswer {
            started,
            text: "Once".to_owned(),
            token_ids: vec![5, 6],
            ..CollectedAnswer::default()
        }
    }

    #[test]
    fn an_answer_that_failed_tells_so_where_other_failures_do() {
        let mut answer = begun();
        answer.finished.set_reason(v1::FinishReason::Error);
        let fault = AnswerFault {
            message: "no verifier is reachable".to_owned(),
            code: Code::Unavailable,
        };
        let object = object(&answer, Some(&fault));
        let error = json!({ "message": "no verifier is reachable", "code": "Unavailable" });
        assert_eq!(
            (&object["error"], &object["text"], &object["finish_reason"]),
            (&error, &json!("Once"), &json!("error"))
        );
        assert_eq!(object["exact"], false);
        assert!(super::object(&answer, None)["error"].is_null());
    }

    #[test]
    fn of_an_answer_without_its_end_what_came_is_told() {
        for (code, reason) in [(Code::Unavailable, "error"), (Code::Cancelled, "cancelled")] {
            let message = "lost".to_owned();
            let object = object(&begun(), Some(&AnswerFault { message, code }));
            assert_eq!(object["finish_reason"], reason);
            assert_eq!(
                (&object["seed"], &object["token_ids"]),
                (&json!(7), &json!([5, 6]))
            );
            let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2 });
            assert_eq!(object["usage"], usage);
            for key in OF_THE_END {
                assert_eq!(object.get(key), Some(&Value::Null), "{key}");
            }
        }
    }
}
