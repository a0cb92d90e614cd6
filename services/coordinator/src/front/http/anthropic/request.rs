//! Requests in Anthropic's form.

use serde_json::json;
use serde_json::value::RawValue;
use wire::bounds::{MAX_MESSAGES, MAX_STOPS, MAX_TOOLS};
use wire::status::BadField;
use wire::{json, v1};

use crate::front::http::fields::{JsonFields, TextOrList, list, quoted};
use crate::front::http::state::ParsedRequest;
use crate::front::http::{messages, options, tools};
use crate::limits::MAX_PARTS;

/// Hints of Anthropic's clients that change nothing here.
const HINTS: [&str; 4] = [
    "container",
    "context_management",
    "output_config",
    "anthropic_version",
];

/// Reads a request's body: Anthropic's fields, and beside them those that all requests here have.
pub(super) fn read(body: &[u8]) -> Result<ParsedRequest, BadField> {
    let mut fields = JsonFields::of_body(body)?;
    let (mut request, delivery) = options::read(&mut fields)?;
    if delivery.choices > 1 || delivery.token_ids {
        let problem = "a message has one output, without token ids; leave it out";
        return Err(BadField::new("n", problem));
    }
    if delivery.report_rounds {
        let problem = "a message tells no rounds; leave it out";
        return Err(BadField::new(options::REPORT_ROUNDS, problem));
    }
    let stops = fields.take_by("stop_sequences", |json| list(json, MAX_STOPS))?;
    request.stop.extend(stops.unwrap_or_default());
    let system = fields.take_raw("system");
    let turns = fields.take_by("messages", |json| list::<&RawValue>(json, MAX_MESSAGES))?;
    let turns = turns.unwrap_or_default();
    if turns.is_empty() {
        return Err(BadField::new("messages", "missing, expected at least one"));
    }
    if let Some(system) = system {
        let content = messages::text("system", system, &["text"])?;
        request.messages.push(turn("system", content));
    }
    for (at, message) in turns.into_iter().enumerate() {
        add_message(&format!("messages.{at}"), message, &mut request.messages)?;
    }
    let warnings = read_tools(&mut fields, &mut request)?;
    let mut arguments = options::template_arguments(&mut fields)?;
    if let Some(mut thinking) = fields.take_object("thinking")? {
        let kind: Option<String> = thinking.take("type")?;
        let is_on = kind.as_deref() != Some("disabled");
        arguments.entry("enable_thinking").or_insert(json!(is_on));
    }
    request.template_arguments = (!arguments.is_empty()).then(|| json::to_wire(&arguments));
    for name in HINTS {
        fields.has(name);
    }
    fields.finish()?;
    Ok(ParsedRequest {
        echo: false,
        kept_per_token: 0,
        request,
        delivery,
        names: [("prompt", "messages"), ("stop", "stop_sequences")]
            .into_iter()
            .chain(tools::NAMES)
            .collect(),
        warnings,
        prompts: vec![None],
    })
}

fn turn(role: &str, content: String) -> v1::ChatMessage {
    v1::ChatMessage {
        role: role.to_owned(),
        content,
        ..Default::default()
    }
}

fn read_content<'a>(path: &str, content: &'a RawValue) -> Result<TextOrList<'a>, BadField> {
    let read = TextOrList::of_json(content.get(), MAX_PARTS);
    read.map_err(|_| BadField::new(path, "expected a text, or a list of blocks"))
}

fn text_of(block: &mut JsonFields<'_>) -> Result<String, BadField> {
    let text: Option<String> = block.take("text")?;
    text.ok_or_else(|| block.error("text", "missing"))
}

/// Adds the turns that a message comes to: results of tools are turns of their own, before what the user says.
fn add_message(
    path: &str,
    message: &RawValue,
    turns: &mut Vec<v1::ChatMessage>,
) -> Result<(), BadField> {
    let mut fields = JsonFields::within(path, message)?;
    let role: Option<String> = fields.take("role")?;
    let role = role.ok_or_else(|| fields.error("role", "missing"))?;
    let content = fields.take_raw("content");
    let content = content.ok_or_else(|| fields.error("content", "missing"))?;
    let path = format!("{path}.content");
    let blocks = match read_content(&path, content)? {
        TextOrList::Text(text) => {
            turns.push(turn(&role, text));
            return Ok(());
        }
        TextOrList::List(blocks) => blocks,
    };
    let mut said: Vec<String> = Vec::new();
    let mut own = turn(&role, String::new());
    let mut has_results = false;
    for (at, block) in blocks.into_iter().enumerate() {
        let path = format!("{path}.{at}");
        let mut block = JsonFields::within(&path, block)?;
        let kind: String = block.take("type")?.unwrap_or_default();
        match kind.as_str() {
            "text" => said.push(text_of(&mut block)?),
            "thinking" => own
                .reasoning
                .push_str(&block.take::<String>("thinking")?.unwrap_or_default()),
            "redacted_thinking" => {}
            "tool_use" => {
                let name: Option<String> = block.take("name")?;
                own.tool_calls.push(v1::ToolCall {
                    id: block.take("id")?.unwrap_or_default(),
                    name: name.ok_or_else(|| block.error("name", "missing"))?,
                    arguments: block
                        .take_raw("input")
                        .map_or("{}", RawValue::get)
                        .to_owned(),
                });
            }
            "tool_result" => {
                has_results = true;
                let result = block.take_raw("content");
                let content = result
                    .map(|result| messages::text(&format!("{path}.content"), result, &["text"]));
                let id: Option<String> = block.take("tool_use_id")?;
                turns.push(v1::ChatMessage {
                    tool_call_id: id.ok_or_else(|| block.error("tool_use_id", "missing"))?,
                    ..turn("tool", content.transpose()?.unwrap_or_default())
                });
            }
            other => {
                let problem = format!(
                    "'{}' is not supported, expected text, tool_use, tool_result or thinking",
                    quoted(other)
                );
                return Err(block.error("type", problem));
            }
        }
    }
    own.content = said.join("\n");
    if !(has_results && own.content.is_empty()) {
        turns.push(own);
    }
    Ok(())
}

/// Reads what may be called, and whether. Tools that Anthropic runs are left out, which the result says.
fn read_tools(
    fields: &mut JsonFields<'_>,
    request: &mut v1::GenerateRequest,
) -> Result<Vec<String>, BadField> {
    let given = fields.take_by("tools", |json| list::<&RawValue>(json, 2 * MAX_TOOLS))?;
    let mut warnings = Vec::new();
    for (at, tool) in given.unwrap_or_default().into_iter().enumerate() {
        let mut tool = JsonFields::within(&format!("tools.{at}"), tool)?;
        let kind: Option<String> = tool.take("type")?;
        if let Some(kind) = kind.filter(|kind| kind != "custom") {
            warnings.push(tools::left_out(at, &kind));
            continue;
        }
        let name: Option<String> = tool.take("name")?;
        request.tools.push(v1::Tool {
            name: name.ok_or_else(|| tool.error("name", "missing"))?,
            description: tool.take("description")?.unwrap_or_default(),
            parameters: tool
                .take_raw("input_schema")
                .map_or("", RawValue::get)
                .to_owned(),
            strict: tool.take("strict")?.unwrap_or_default(),
        });
    }
    let Some(mut choice) = fields.take_object("tool_choice")? else {
        return Ok(warnings);
    };
    let kind: String = choice.take("type")?.unwrap_or_default();
    let is_single: Option<bool> = choice.take("disable_parallel_tool_use")?;
    request.parallel_tool_calls = is_single.map(|single| !single);
    let name: Option<String> = choice.take("name")?;
    match (kind.as_str(), name) {
        ("auto", _) => request.set_tool_choice(v1::ToolChoice::Auto),
        ("any", _) => request.set_tool_choice(v1::ToolChoice::Required),
        ("none", _) => request.set_tool_choice(v1::ToolChoice::None),
        ("tool", Some(name)) => request.called_tool = name,
        _ => {
            let problem = "expected auto, any, none, or tool with a name";
            return Err(choice.error("type", problem));
        }
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read_json(value: &Value) -> Result<ParsedRequest, BadField> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn blocks_become_turns_and_results_turns_of_their_own() {
        let request = read_json(&json!({
            "model": "m", "max_tokens": 9, "stop_sequences": ["x"], "system": [{ "type": "text", "text": "s", "cache_control": {} }],
            "messages": [
                { "role": "user", "content": "a" },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "" },
                    { "type": "text", "text": "b" },
                    { "type": "tool_use", "id": "1", "name": "f", "input": { "k": 1 } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "1", "content": [{ "type": "text", "text": "r" }] },
                    { "type": "text", "text": "c" },
                ] },
            ],
            "tools": [{ "name": "f", "input_schema": { "type": "object" } }, { "type": "web_search_20250305", "name": "web_search" }],
            "tool_choice": { "type": "any", "disable_parallel_tool_use": true },
            "thinking": { "type": "disabled" }, "metadata": { "user_id": "u" },
        }))
        .expect("in order");
        assert_eq!(request.warnings.len(), 1);
        let request = request.request;
        let turns: Vec<_> = request
            .messages
            .iter()
            .map(|turn| (&*turn.role, &*turn.content))
            .collect();
        assert_eq!(
            turns,
            [
                ("system", "s"),
                ("user", "a"),
                ("assistant", "b"),
                ("tool", "r"),
                ("user", "c")
            ]
        );
        assert_eq!(request.messages[2].reasoning, "hm");
        assert_eq!(request.messages[2].tool_calls[0].arguments, r#"{"k":1}"#);
        assert_eq!(request.tool_choice(), v1::ToolChoice::Required);
        assert_eq!(
            (request.parallel_tool_calls, request.stop),
            (Some(false), vec!["x".to_owned()])
        );
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        for (request, field) in [
            (json!({}), "messages"),
            (user(json!(3)), "messages.0.content"),
            (
                user(json!([{ "type": "image" }])),
                "messages.0.content.0.type",
            ),
            (
                user(json!([{ "type": "tool_result" }])),
                "messages.0.content.0.tool_use_id",
            ),
            (
                json!({ "messages": [{ "content": "x" }] }),
                "messages.0.role",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": "x" }], "tools": [{}] }),
                "tools.0.name",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": "x" }], "tool_choice": { "type": "tool" } }),
                "tool_choice.type",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": "x" }], "prompt": "x" }),
                "prompt",
            ),
        ] {
            assert_eq!(
                read_json(&request).err().map(|bad| bad.field).as_deref(),
                Some(field)
            );
        }
    }
}
