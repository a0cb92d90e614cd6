//! What requests for completions and for chats have in common.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wire::named::{NamedDrafting, NamedMethod};
use wire::status::BadField;
use wire::v1;

use super::fields::Fields;

/// Most outputs of one request, those of all its prompts together.
pub(super) const MOST_OUTPUTS: u32 = 128;

/// What a request asks for beside what each of its outputs does.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fields of a request that do not depend on one another"
)]
pub(super) struct Delivery {
    /// Whether the answer comes piece by piece.
    pub(super) stream: bool,
    /// Whether a last piece holds the usage; and each piece what was used until then.
    pub(super) include_usage: bool,
    pub(super) continuous_usage: bool,
    /// Whether the tokens of the output come beside its text.
    pub(super) token_ids: bool,
    /// Outputs for each prompt.
    pub(super) choices: u32,
}

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

/// Reads the fields in common, as what a gRPC client would send, without prompt and log probabilities. What is not
/// given is left to the coordinator.
///
/// # Errors
/// Names a field that is not what it must be, or is not supported.
pub(super) fn read(fields: &mut Fields) -> Result<(v1::GenerateRequest, Delivery), BadField> {
    let mut request = v1::GenerateRequest {
        model: fields.take("model")?.unwrap_or_default(),
        max_tokens: fields.take("max_tokens")?,
        sampling: Some(sampling(fields)?),
        // Clients send signed numbers.
        seed: fields.take::<i64>("seed")?.map(i64::cast_unsigned),
        stop: match fields.take("stop")? {
            None => Vec::new(),
            Some(Texts::One(text)) => vec![text],
            Some(Texts::Several(texts)) => texts,
        },
        stop_token_ids: fields.take("stop_token_ids")?.unwrap_or_default(),
        ignore_eos: fields.take("ignore_eos")?.unwrap_or_default(),
        tenant: fields.take("user")?.unwrap_or_default(),
        ..Default::default()
    };
    speculation(fields, &mut request)?;
    let delivery = delivery(fields)?;
    for (name, neutral) in [
        ("service_tier", vec![json!("auto"), json!("default")]),
        ("store", vec![json!(false)]),
        ("metadata", vec![json!({})]),
        // Other servers have these defaults, and some clients send them.
        ("skip_special_tokens", vec![json!(true)]),
        ("spaces_between_special_tokens", vec![json!(true)]),
        ("include_stop_str_in_output", vec![json!(false)]),
        ("length_penalty", vec![json!(1.0), json!(1)]),
        ("use_beam_search", vec![json!(false)]),
        ("priority", vec![json!(0)]),
    ] {
        fields.only(name, &neutral)?;
    }
    // These are hints to a provider, which change no output.
    for name in ["safety_identifier", "prompt_cache_key"] {
        fields.take::<String>(name)?;
    }
    Ok((request, delivery))
}

fn sampling(fields: &mut Fields) -> Result<v1::SamplingParams, BadField> {
    let bias: BTreeMap<String, f32> = fields.take("logit_bias")?.unwrap_or_default();
    let bias = bias.into_iter().map(|(token, bias)| {
        let problem = || BadField::new("logit_bias", format!("'{token}' is no token id"));
        let token_id: u32 = token.parse().map_err(|_| problem())?;
        // A token has one key: beside '5', '05' or '+5' would be another for it.
        if token_id.to_string() != token {
            return Err(problem());
        }
        Ok(v1::LogitBias { token_id, bias })
    });
    let whole = |top_k: Option<i64>| match top_k {
        // Other servers write -1 for no cut.
        None | Some(-1) => Ok(0),
        Some(top_k) => u32::try_from(top_k).map_err(|_| {
            BadField::new(
                "top_k",
                format!("{top_k} is out of range, expected at least 0"),
            )
        }),
    };
    Ok(v1::SamplingParams {
        temperature: fields.take("temperature")?,
        top_p: fields.take("top_p")?,
        top_k: whole(fields.take("top_k")?)?,
        min_p: fields.take("min_p")?.unwrap_or_default(),
        repetition_penalty: fields.take("repetition_penalty")?,
        presence_penalty: fields.take("presence_penalty")?.unwrap_or_default(),
        frequency_penalty: fields.take("frequency_penalty")?.unwrap_or_default(),
        logit_bias: bias.collect::<Result<_, BadField>>()?,
        banned_token_ids: fields.take("banned_token_ids")?.unwrap_or_default(),
        allowed_token_ids: fields.take("allowed_token_ids")?.unwrap_or_default(),
        min_tokens: fields.take("min_tokens")?.unwrap_or_default(),
    })
}

fn delivery(fields: &mut Fields) -> Result<Delivery, BadField> {
    let stream = fields.take("stream")?.unwrap_or_default();
    let mut delivery = Delivery {
        stream,
        choices: fields.take("n")?.unwrap_or(1),
        token_ids: fields.take("return_token_ids")?.unwrap_or_default(),
        ..Default::default()
    };
    if !(1..=MOST_OUTPUTS).contains(&delivery.choices) {
        let problem = format!(
            "{} is out of range, expected 1 to {MOST_OUTPUTS}",
            delivery.choices
        );
        return Err(BadField::new("n", problem));
    }
    if let Some(mut options) = fields.take_object("stream_options")? {
        if !stream {
            let problem = "goes with stream only; set stream, or leave it out";
            return Err(BadField::new("stream_options", problem));
        }
        delivery.include_usage = options.take("include_usage")?.unwrap_or_default();
        delivery.continuous_usage = options.take("continuous_usage_stats")?.unwrap_or_default();
        // Pieces are never padded.
        options.take::<bool>("include_obfuscation")?;
        options.finish()?;
    }
    Ok(delivery)
}

/// Reads the object `speculation`: a method, its axes and parameters, under the names of the command line.
fn speculation(fields: &mut Fields, request: &mut v1::GenerateRequest) -> Result<(), BadField> {
    let Some(mut given) = fields.take_object("speculation")? else {
        return Ok(());
    };
    let enabled = given.take::<bool>("enabled")?.unwrap_or(true);
    let method: Option<String> = given.take("method")?;
    // Numbers may come as such.
    let text = |value: Option<Value>| {
        value.map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        })
    };
    let named = NamedMethod {
        method: match method {
            None if !enabled => "target-only".to_owned(),
            method => method.unwrap_or_default(),
        },
        alpha: given.take("alpha")?,
        rule: given.take("rule")?,
        beta: text(given.take("beta")?),
        kl_budget: given.take("kl_budget")?,
        fallback: given.take("fallback")?,
        window: given.take("window")?,
        verify_on_finish: given.take("verify_on_finish")?,
        code_variant: given.take("code_variant")?,
        max_run: given.take("max_run")?,
        mean: given.take("mean")?,
        plan: given.take("plan")?,
        target: given.take("target")?,
        verification: given.take("verification")?,
        proposal: given.take("proposal")?,
        accept_at: given.take("accept_at")?,
        drafting: NamedDrafting {
            drafting: given.take("drafting")?,
            draft_len: text(given.take("draft_len")?),
            draft_cap: given.take("draft_cap")?,
            tree: given.take("tree")?,
        },
    };
    given.finish()?;
    if !enabled && named.method != "target-only" {
        let problem = "false, and a method is named that drafts; leave out one of them";
        return Err(BadField::new("speculation.enabled", problem));
    }
    named
        .apply(request)
        .map_err(|bad| BadField::new(format!("speculation.{}", bad.field), bad.problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_json(value: &Value) -> Result<(v1::GenerateRequest, Delivery), BadField> {
        let mut fields = Fields::of_body(value.to_string().as_bytes())?;
        let read = read(&mut fields)?;
        fields.finish()?;
        Ok(read)
    }

    #[test]
    fn fields_come_to_what_a_grpc_client_would_send() {
        let (request, delivery) = read_json(&json!({
            "model": "m", "max_tokens": 7, "temperature": 0.5, "top_k": -1, "seed": -1, "stop": "x",
            "logit_bias": { "5": -100 }, "stream": true, "stream_options": { "include_usage": true }, "n": 2,
            "user": "u", "ignore_eos": null, "store": false,
            "speculation": { "method": "spec-cascade", "rule": "token-v3", "alpha": 0.3, "draft_len": 4 },
        }))
        .expect("in order");
        assert_eq!(
            (request.max_tokens, request.seed),
            (Some(7), Some(u64::MAX))
        );
        assert_eq!(request.stop, ["x"]);
        assert_eq!(
            (&request.method[..], request.draft_len),
            ("spec-cascade", Some(4))
        );
        let sampling = request.sampling.expect("sampling");
        assert_eq!((sampling.temperature, sampling.top_k), (Some(0.5), 0));
        let bias = v1::LogitBias {
            token_id: 5,
            bias: -100.0,
        };
        assert_eq!(sampling.logit_bias, [bias]);
        assert!(delivery.stream && delivery.include_usage && !delivery.continuous_usage);
        assert_eq!((delivery.choices, &request.tenant[..]), (2, "u"));
        let (off, _) = read_json(&json!({ "speculation": { "enabled": false } })).expect("off");
        assert_eq!(off.method, "target-only");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, field) in [
            (json!({ "temperature": "hot" }), "temperature"),
            (json!({ "n": 0 }), "n"),
            (json!({ "top_k": -2 }), "top_k"),
            (json!({ "logit_bias": { "a": 1 } }), "logit_bias"),
            (json!({ "logit_bias": { "5": 1, "05": 2 } }), "logit_bias"),
            (json!({ "logit_bias": { "+5": 1 } }), "logit_bias"),
            (json!({ "stream_options": {} }), "stream_options"),
            (
                json!({ "stream": true, "stream_options": { "x": 1 } }),
                "stream_options.x",
            ),
            (json!({ "store": true }), "store"),
            (json!({ "best_of": 3 }), "best_of"),
            (
                json!({ "speculation": { "depth": 3 } }),
                "speculation.depth",
            ),
            (
                json!({ "speculation": { "tree": "bush" } }),
                "speculation.tree",
            ),
            (
                json!({ "speculation": { "enabled": false, "method": "block" } }),
                "speculation.enabled",
            ),
        ] {
            assert_eq!(read_json(&value).expect_err(field).field, field);
        }
    }
}
