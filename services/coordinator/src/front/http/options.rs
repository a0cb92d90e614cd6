//! What requests for completions and for chats have in common.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use speculation::methods::{MethodSpec, SETTINGS, SettingValue};
use wire::bounds::{MAX_SETTINGS_BYTES, MAX_STOPS};
use wire::sampling::{FIELDS, MAX_LOGIT_BIAS, SamplingField, SamplingKind};
use wire::status::BadField;
use wire::{settings, v1};

use super::fields::{JsonFields, Readable, Seed, TextOrList, object, quoted};
use super::messages;
use crate::limits::MOST_OUTPUTS;

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
    /// Whether they come with where they are from, and each round with what it came to.
    pub(super) report_rounds: bool,
    /// Outputs for each prompt.
    pub(super) choices: u32,
}

/// Bytes that are kept of a token with its text, and of each alternative to it.
const TOKEN_BYTES: u64 = 256;
const ALTERNATIVE_BYTES: u64 = 16;

/// Returns the bytes that an answer keeps of each token until its end: of one that comes whole, and tells tokens beside
/// their text.
pub(super) fn kept_per_token(request: &v1::GenerateRequest, delivery: Delivery) -> u64 {
    match delivery {
        Delivery { stream: true, .. } => 0,
        _ if request.logprobs => TOKEN_BYTES + ALTERNATIVE_BYTES * u64::from(request.top_logprobs),
        Delivery {
            token_ids: true, ..
        } => TOKEN_BYTES,
        Delivery { .. } => 0,
    }
}

/// Hints in all requests: to a provider's bookkeeping and billing, to caches, and to models that reason. They change no
/// output, and clients send them to every server, so they are taken and ignored, whatever they hold.
const HINTS: [&str; 8] = [
    "client_metadata",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
];

/// Reads further arguments of the chat template, among them how much the model is to think.
pub(super) fn template_arguments(
    fields: &mut JsonFields<'_>,
) -> Result<Map<String, Value>, BadField> {
    const FIELD: &str = "chat_template_kwargs";
    let given = fields.take_raw(FIELD);
    let bytes = given.map_or(0, |given| given.get().len());
    BadField::at_most(FIELD, bytes, MAX_SETTINGS_BYTES, "bytes")?;
    let mut arguments = match given.map(|given| serde_json::from_str(given.get())) {
        Some(Ok(Value::Object(arguments))) => arguments,
        None => Map::new(),
        Some(_) => return Err(BadField::new(FIELD, "expected an object")),
    };
    if let Some(effort) = fields.take::<String>("reasoning_effort")? {
        set_effort(&effort, &mut arguments);
    }
    Ok(arguments)
}

/// Tells a chat template how much the model is to think, in the words of OpenAI; `none` is told as Qwen3's template has it,
/// too.
pub(super) fn set_effort(effort: &str, arguments: &mut Map<String, Value>) {
    if effort == "none" {
        arguments.entry("enable_thinking").or_insert(json!(false));
    }
    arguments.entry("reasoning_effort").or_insert(json!(effort));
}

/// Reads what the output is expected to be like; empty if nothing is.
fn prediction(fields: &mut JsonFields<'_>) -> Result<String, BadField> {
    const FIELD: &str = "prediction";
    let Some(mut prediction) = fields.take_object(FIELD)? else {
        return Ok(String::new());
    };
    let kind: Option<String> = prediction.take("type")?;
    if let Some(other) = kind.filter(|kind| kind != "content") {
        let problem = format!("{} is not supported, expected content", quoted(&other));
        return Err(prediction.error("type", problem));
    }
    let content = prediction.take_raw("content");
    let content = content.ok_or_else(|| prediction.error("content", "missing"))?;
    prediction.finish()?;
    messages::text("prediction.content", content, &["text"])
}

/// Reads one text, or several.
pub(super) fn texts(json: &str) -> serde_json::Result<Vec<String>> {
    match TextOrList::of_json(json, MAX_STOPS)? {
        TextOrList::Text(text) => Ok(vec![text]),
        TextOrList::List(texts) => {
            let texts = texts.into_iter();
            texts.map(|text| serde_json::from_str(text.get())).collect()
        }
    }
}

/// Reads the fields in common, as what a gRPC client would send, without prompt and log probabilities. What is not
/// given is left to the coordinator.
///
/// # Errors
/// Names a field that is not what it must be, or is not supported.
pub(super) fn read(
    fields: &mut JsonFields<'_>,
) -> Result<(v1::GenerateRequest, Delivery), BadField> {
    let mut request = v1::GenerateRequest {
        model: fields.take("model")?.unwrap_or_default(),
        max_tokens: fields.take("max_tokens")?,
        sampling: Some(sampling(fields)?),
        seed: fields.take("seed")?.map(|Seed(seed)| seed),
        stop: fields.take_by("stop", texts)?.unwrap_or_default(),
        stop_token_ids: fields.take("stop_token_ids")?.unwrap_or_default(),
        ignore_eos: fields.take("ignore_eos")?.unwrap_or_default(),
        tenant: fields.take("user")?.unwrap_or_default(),
        prediction: prediction(fields)?,
        cache_salt: fields.take("cache_salt")?.unwrap_or_default(),
        cache_prompt: fields.take("cache_prompt")?,
        ..Default::default()
    };
    speculation(fields, &mut request)?;
    let delivery = delivery(fields)?;
    request.report_rounds = delivery.report_rounds;
    for (name, neutral) in [
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
    for name in HINTS {
        fields.has(name);
    }
    Ok((request, delivery))
}

/// Reads changes to logits by token ids, each of which stands there once, written as numbers are.
fn logit_bias(
    fields: &mut JsonFields<'_>,
    name: &'static str,
) -> Result<Vec<v1::LogitBias>, BadField> {
    let numbers = |json| -> serde_json::Result<Vec<(String, f32)>> {
        let pairs = object(json, MAX_LOGIT_BIAS)?.into_iter();
        let numbers = pairs.map(|(token, bias)| Ok((token, f32::of_json(bias.get())?)));
        numbers.collect()
    };
    let mut read = BTreeMap::new();
    for (token, bias) in fields.take_by(name, numbers)?.unwrap_or_default() {
        let bad = |problem: &str| {
            let problem = format!("'{}' {problem}", quoted(&token));
            Err(BadField::new(name, problem))
        };
        match token.parse::<u32>() {
            Ok(token_id) if token_id.to_string() == token => {
                if read.insert(token_id, bias).is_some() {
                    return bad("stands twice");
                }
            }
            _ => return bad("is no token id"),
        }
    }
    let read = read.into_iter();
    Ok(read
        .map(|(token_id, bias)| v1::LogitBias { token_id, bias })
        .collect())
}

/// Reads the sampling parameters, each as the table has it.
fn sampling(fields: &mut JsonFields<'_>) -> Result<v1::SamplingParams, BadField> {
    let mut params = v1::SamplingParams::default();
    for &SamplingField { name, kind, .. } in &FIELDS {
        match kind {
            SamplingKind::Number(_, set) => set(&mut params, fields.take(name)?),
            SamplingKind::Count(_, set) => {
                let count = match name {
                    "top_k" => top_k(fields.take(name)?)?,
                    _ => fields.take(name)?.unwrap_or_default(),
                };
                set(&mut params, count);
            }
            SamplingKind::TokenIds(_, set) => {
                set(&mut params, fields.take(name)?.unwrap_or_default());
            }
            SamplingKind::Biases(_, set) => set(&mut params, logit_bias(fields, name)?),
        }
    }
    if params.top_p == Some(0.0) {
        // The fewest tokens that reach no probability at all: the most likely one.
        (params.top_p, params.top_k) = (None, 1);
    }
    Ok(params)
}

/// Reads how many tokens are kept.
fn top_k(given: Option<i64>) -> Result<u32, BadField> {
    match given {
        // Other servers write -1 for no cut.
        None | Some(-1) => Ok(0),
        Some(top_k) => u32::try_from(top_k).map_err(|_| {
            let problem = format!("{top_k} is out of range, expected at least 0");
            BadField::new("top_k", problem)
        }),
    }
}

/// The field that asks for reports of rounds.
pub(super) const REPORT_ROUNDS: &str = "report_rounds";

const WITH_STREAM: &str = "goes with stream only; set stream, or leave it out";

fn delivery(fields: &mut JsonFields<'_>) -> Result<Delivery, BadField> {
    let stream = fields.take("stream")?.unwrap_or_default();
    let mut delivery = Delivery {
        stream,
        choices: fields.take("n")?.unwrap_or(1),
        token_ids: fields.take("return_token_ids")?.unwrap_or_default(),
        report_rounds: fields.take(REPORT_ROUNDS)?.unwrap_or_default(),
        ..Default::default()
    };
    BadField::in_range("n", delivery.choices, 1..=MOST_OUTPUTS)?;
    if delivery.report_rounds && !stream {
        return Err(BadField::new(REPORT_ROUNDS, WITH_STREAM));
    }
    if let Some(mut options) = fields.take_object("stream_options")? {
        if !stream {
            return Err(BadField::new("stream_options", WITH_STREAM));
        }
        delivery.include_usage = options.take("include_usage")?.unwrap_or_default();
        delivery.continuous_usage = options.take("continuous_usage_stats")?.unwrap_or_default();
        // Pieces are never padded.
        options.take::<bool>("include_obfuscation")?;
        options.finish()?;
    }
    Ok(delivery)
}

/// Reads the object `speculation`: a method and its settings, of any name in the table of settings.
pub(super) fn speculation(
    fields: &mut JsonFields<'_>,
    request: &mut v1::GenerateRequest,
) -> Result<(), BadField> {
    let Some(mut given) = fields.take_object("speculation")? else {
        return Ok(());
    };
    let enabled = given.take::<bool>("enabled")?.unwrap_or(true);
    let method: Option<String> = given.take("method")?;
    let method = method.or_else(|| (!enabled).then(|| "target-only".to_owned()));
    let mut spec = MethodSpec::new(&method.unwrap_or_default());
    for setting in SETTINGS {
        if let Some(value) = given.take(setting.name)? {
            let set = setting.check(&value);
            let set = set.and_then(|()| spec.set(setting.name, value));
            set.map_err(|bad| BadField::new(format!("speculation.{}", bad.field), bad.problem))?;
        }
    }
    given.finish()?;
    if !enabled && spec.method != "target-only" {
        let problem = "false, and a method is named that drafts; leave out one of them";
        return Err(BadField::new("speculation.enabled", problem));
    }
    settings::to_wire(&spec, request);
    Ok(())
}

/// A number, a flag or a text.
impl Readable<'_> for SettingValue {
    fn of_json(json: &str) -> serde_json::Result<Self> {
        match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<String>(json).map(Self::from),
            Some(b't' | b'f') => serde_json::from_str(json).map(Self::Flag),
            _ => f64::of_json(json).map(Self::Number),
        }
    }
}

#[cfg(test)]
mod tests;
