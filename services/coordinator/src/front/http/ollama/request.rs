//! Requests in Ollama's forms.

use serde_json::Value;
use serde_json::value::RawValue;
use wire::bounds::{MAX_CALLS, MAX_MESSAGES};
use wire::status::BadField;
use wire::v1;
use wire::v1::generate_request::Prompt;

use crate::front::http::fields::{JsonFields, Seed, list, quoted};
use crate::front::http::options::{self, Delivery};
use crate::front::http::state::ParsedRequest;
use crate::front::http::{messages, structured, tools};

/// Names of options that gRPC calls otherwise.
const NAMES: [(&str, &str); 4] = [
    ("max_tokens", "options.num_predict"),
    ("stop", "options.stop"),
    ("seed", "options.seed"),
    (wire::grammar::FIELD, "format"),
];

/// Reads a conversation.
pub(super) fn chat(body: &[u8]) -> Result<ParsedRequest, BadField> {
    let mut fields = JsonFields::of_body(body)?;
    let (mut request, delivery, mut warnings) = common(&mut fields)?;
    let given = fields.take_by("messages", |json| list::<&RawValue>(json, MAX_MESSAGES))?;
    let given = given.unwrap_or_default();
    if given.is_empty() {
        return Err(BadField::new("messages", "missing, expected at least one"));
    }
    for (at, message) in given.into_iter().enumerate() {
        let turn = turn(&format!("messages.{at}"), message, &request.messages)?;
        request.messages.push(turn);
    }
    warnings.extend(tools::read(&mut fields, &mut request)?);
    fields.finish()?;
    Ok(parsed(request, delivery, warnings, None))
}

/// Reads a text: raw, it is continued; else it is what a user says.
pub(super) fn generate(body: &[u8]) -> Result<ParsedRequest, BadField> {
    let mut fields = JsonFields::of_body(body)?;
    let (mut request, delivery, warnings) = common(&mut fields)?;
    let prompt: Option<String> = fields.take("prompt")?;
    let system: Option<String> = fields.take("system")?;
    let is_raw = fields.take("raw")?.unwrap_or(false);
    for (name, neutral) in [("suffix", ""), ("template", "")] {
        fields.only(name, &[Value::from(neutral)])?;
    }
    // Where an earlier answer ended, of which nothing is kept here.
    fields.only("context", &[Value::Array(Vec::new())])?;
    fields.finish()?;
    let prompt = prompt.ok_or_else(|| BadField::new("prompt", "missing"))?;
    if is_raw {
        return Ok(parsed(
            request,
            delivery,
            warnings,
            Some(Prompt::Text(prompt)),
        ));
    }
    let turn = |role: &str, content: String| v1::ChatMessage {
        role: role.to_owned(),
        content,
        ..Default::default()
    };
    let system = system.filter(|system| !system.is_empty());
    request
        .messages
        .extend(system.map(|system| turn("system", system)));
    request.messages.push(turn("user", prompt));
    Ok(parsed(request, delivery, warnings, None))
}

fn parsed(
    request: v1::GenerateRequest,
    delivery: Delivery,
    warnings: Vec<String>,
    prompt: Option<Prompt>,
) -> ParsedRequest {
    ParsedRequest {
        echo: false,
        kept_per_token: 0,
        request,
        delivery,
        names: NAMES.into_iter().chain(tools::NAMES).collect(),
        warnings,
        prompts: vec![prompt],
    }
}

/// Reads the fields of both forms.
fn common(
    fields: &mut JsonFields<'_>,
) -> Result<(v1::GenerateRequest, Delivery, Vec<String>), BadField> {
    let model: String = fields.take("model")?.unwrap_or_default();
    let mut request = v1::GenerateRequest {
        // The tag that Ollama adds where there is none.
        model: model.strip_suffix(":latest").unwrap_or(&model).to_owned(),
        ..Default::default()
    };
    let warnings = match fields.take_object("options")? {
        Some(options) => read_options(options, &mut request)?,
        None => Vec::new(),
    };
    if let Some(format) = fields
        .take_raw("format")
        .filter(|format| format.get() != "\"\"")
    {
        let grammar = match format.get() {
            "\"json\"" => structured::any_object(),
            _ => structured::by_schema(format),
        };
        request.sampling.get_or_insert_default().grammar = Some(grammar);
    }
    let mut arguments = options::template_arguments(fields)?;
    match fields
        .take_raw("think")
        .map(|think| serde_json::from_str(think.get()))
    {
        Some(Ok(Value::Bool(is_on))) => {
            arguments.insert("enable_thinking".to_owned(), is_on.into());
        }
        Some(Ok(Value::String(effort))) => options::set_effort(&effort, &mut arguments),
        None => {}
        Some(_) => return Err(BadField::new("think", "expected true, false or a text")),
    }
    request.template_arguments = (!arguments.is_empty()).then(|| wire::json::to_wire(&arguments));
    options::speculation(fields, &mut request)?;
    // How long a model stays loaded: here as long as the process.
    fields.has("keep_alive");
    fields.only("images", &[Value::Array(Vec::new())])?;
    let delivery = Delivery {
        stream: fields.take("stream")?.unwrap_or(true),
        choices: 1,
        ..Default::default()
    };
    Ok((request, delivery, warnings))
}

/// Reads the options that there are here too; the result says which of the others were given.
fn read_options(
    mut options: JsonFields<'_>,
    request: &mut v1::GenerateRequest,
) -> Result<Vec<String>, BadField> {
    request.seed = options.take("seed")?.map(|Seed(seed)| seed);
    request.stop = options.take_by("stop", options::texts)?.unwrap_or_default();
    // Less than nothing is no limit.
    let most: Option<i64> = options.take("num_predict")?;
    request.max_tokens = most.and_then(|most| u32::try_from(most).ok());
    let sampling = request.sampling.get_or_insert_default();
    sampling.temperature = options.take("temperature")?;
    sampling.top_p = options.take("top_p")?;
    sampling.top_k = options.take("top_k")?.unwrap_or_default();
    sampling.min_p = options.take("min_p")?.unwrap_or_default();
    sampling.repetition_penalty = options.take("repeat_penalty")?;
    sampling.presence_penalty = options.take("presence_penalty")?.unwrap_or_default();
    sampling.frequency_penalty = options.take("frequency_penalty")?.unwrap_or_default();
    let others = options.names_left();
    let others = others.map(|name| format!("options.{} changes nothing here", quoted(name)));
    Ok(others.collect())
}

/// Reads a turn. Calls have no ids in Ollama's form: a result answers the first call of its tool that is not answered.
fn turn(
    path: &str,
    message: &RawValue,
    before: &[v1::ChatMessage],
) -> Result<v1::ChatMessage, BadField> {
    let mut fields = JsonFields::within(path, message)?;
    let role: Option<String> = fields.take("role")?;
    let role = role.ok_or_else(|| fields.error("role", "missing"))?;
    let calls = fields.take_by("tool_calls", |json| list::<&RawValue>(json, MAX_CALLS))?;
    let calls = calls.unwrap_or_default().into_iter().enumerate();
    let calls = calls.map(|(at, call)| {
        let mut call = JsonFields::within(&format!("{path}.tool_calls.{at}"), call)?;
        let function = call.take_object("function")?;
        let mut function = function.ok_or_else(|| call.error("function", "missing"))?;
        let name: Option<String> = function.take("name")?;
        Ok(v1::ToolCall {
            id: format!("call_{}_{at}", before.len()),
            name: name.ok_or_else(|| function.error("name", "missing"))?,
            arguments: messages::arguments(function.take_raw("arguments")),
        })
    });
    let tool_calls = calls.collect::<Result<_, BadField>>()?;
    fields.only("images", &[Value::Array(Vec::new())])?;
    let tool: Option<String> = fields.take("tool_name")?;
    let is_tool = role == "tool";
    Ok(v1::ChatMessage {
        content: fields.take("content")?.unwrap_or_default(),
        reasoning: fields.take("thinking")?.unwrap_or_default(),
        tool_call_id: is_tool
            .then(|| open_call(before, tool.as_deref()))
            .flatten()
            .unwrap_or_default(),
        name: tool.unwrap_or_default(),
        tool_calls,
        role,
    })
}

/// Returns the id of the first call, of `tool` if that is said, that no turn answers.
fn open_call(before: &[v1::ChatMessage], tool: Option<&str>) -> Option<String> {
    let mut calls = before.iter().flat_map(|turn| &turn.tool_calls);
    let is_open = |call: &&v1::ToolCall| {
        let is_of_tool = tool.is_none_or(|tool| tool == call.name);
        is_of_tool && !before.iter().any(|turn| turn.tool_call_id == call.id)
    };
    calls.find(is_open).map(|call| call.id.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_read_and_results_find_their_calls() {
        let call = |name: &str| json!({ "function": { "name": name, "arguments": { "a": 1 } } });
        let request = chat(json!({
            "model": "m:latest", "keep_alive": "5m", "think": false, "format": "json",
            "messages": [
                { "role": "user", "content": "x" },
                { "role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("f"), call("g"), call("f")] },
                { "role": "tool", "content": "1", "tool_name": "g" },
                { "role": "tool", "content": "2", "tool_name": "f" },
                { "role": "tool", "content": "3" },
            ],
            "tools": [{ "type": "function", "function": { "name": "f", "parameters": {} } }],
            "options": { "num_predict": -1, "seed": 3, "stop": ["y"], "temperature": 0, "num_ctx": 4096 },
        }).to_string().as_bytes())
        .expect("in order");
        assert!(request.delivery.stream);
        assert_eq!(request.warnings, ["options.num_ctx changes nothing here"]);
        let request = request.request;
        let answered: Vec<_> = request.messages[2..]
            .iter()
            .map(|turn| &*turn.tool_call_id)
            .collect();
        assert_eq!(answered, ["call_1_1", "call_1_0", "call_1_2"]);
        assert_eq!(
            (&*request.model, request.max_tokens, request.seed),
            ("m", None, Some(3))
        );
    }

    #[test]
    fn a_text_is_continued_or_said() {
        let read = |more: Value| generate(more.to_string().as_bytes());
        let raw = read(json!({ "prompt": "x", "raw": true, "stream": false })).expect("in order");
        assert_eq!(raw.prompts, [Some(Prompt::Text("x".to_owned()))]);
        let said = read(json!({ "prompt": "x", "system": "s" })).expect("in order");
        assert_eq!(said.request.messages.len(), 2);
        for (request, field) in [
            (json!({}), "prompt"),
            (json!({ "prompt": "x", "context": [1] }), "context"),
            (json!({ "prompt": "x", "images": ["a"] }), "images"),
            (json!({ "prompt": "x", "think": 3 }), "think"),
            (
                json!({ "prompt": "x", "options": { "top_p": "x" } }),
                "options.top_p",
            ),
        ] {
            assert_eq!(
                read(request).err().map(|bad| bad.field).as_deref(),
                Some(field)
            );
        }
    }
}
