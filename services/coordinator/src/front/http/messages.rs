//! The turns of a conversation.

use serde_json::value::RawValue;
use wire::bounds::{MAX_CALLS, MAX_MESSAGES};
use wire::status::BadField;
use wire::v1;

use super::fields::{JsonFields, TextOrList, list, problem, quoted};
use crate::limits::MAX_PARTS;

/// Reads the messages that stand in field `name`. Their contents are texts, or lists of parts of the types `parts`. What
/// else stands in them is ignored: clients send answers back as they came, also those of other servers.
///
/// # Errors
/// Names the field that is missing, or cannot be ignored.
pub(super) fn read(
    name: &str,
    messages: &[&RawValue],
    parts: &[&str],
) -> Result<Vec<v1::ChatMessage>, BadField> {
    if messages.is_empty() {
        return Err(BadField::new(name, "missing, expected at least one"));
    }
    BadField::at_most(name, messages.len(), MAX_MESSAGES, "turns")?;
    let messages = messages.iter().enumerate();
    let turns = messages.map(|(index, message)| turn(&format!("{name}.{index}"), message, parts));
    turns.collect()
}

pub(super) fn turn(
    path: &str,
    message: &RawValue,
    types: &[&str],
) -> Result<v1::ChatMessage, BadField> {
    let mut fields = JsonFields::within(path, message)?;
    let role: Option<String> = fields.take("role")?;
    let content = fields.take_raw("content");
    if let Some(other) = fields
        .take::<String>("type")?
        .filter(|kind| kind != "message")
    {
        let problem = format!(
            "{} is not supported, expected message; nothing is stored here, so send the messages themselves \
             (clients that keep references do so with store false)",
            name(&other)
        );
        return Err(BadField::new(format!("{path}.type"), problem));
    }
    let speaker: Option<String> = fields.take("name")?;
    let missing = |name: &str| BadField::new(format!("{path}.{name}"), "missing");
    let role = role.ok_or_else(|| missing("role"))?;
    let calls = fields.take_by("tool_calls", |json| list::<&RawValue>(json, MAX_CALLS))?;
    let calls = calls.unwrap_or_default().into_iter().enumerate();
    let calls = calls.map(|(at, call)| tool_call(&format!("{path}.tool_calls.{at}"), call));
    let tool_calls = calls.collect::<Result<_, _>>()?;
    let content = match content {
        Some(content) => text(&format!("{path}.content"), content, types)?,
        // An answer of nothing, or of calls alone.
        None if role == "assistant" => String::new(),
        None => return Err(missing("content")),
    };
    // Other servers have either name; a client's own field of these names may be of any type.
    let thought = ["reasoning_content", "reasoning"].map(|name| fields.take_raw(name));
    let thought = thought.into_iter().flatten();
    let mut thought = thought.filter_map(|json| serde_json::from_str(json.get()).ok());
    Ok(v1::ChatMessage {
        role,
        content,
        name: speaker.unwrap_or_default(),
        tool_calls,
        tool_call_id: fields.take("tool_call_id")?.unwrap_or_default(),
        reasoning: thought.next().unwrap_or_default(),
    })
}

/// Reads a call of an earlier turn.
fn tool_call(path: &str, call: &RawValue) -> Result<v1::ToolCall, BadField> {
    let mut fields = JsonFields::within(path, call)?;
    let id: Option<String> = fields.take("id")?;
    let function = fields.take_object("function")?;
    let mut function = function.ok_or_else(|| fields.error("function", "missing"))?;
    let name: Option<String> = function.take("name")?;
    Ok(v1::ToolCall {
        id: id.unwrap_or_default(),
        name: name.ok_or_else(|| function.error("name", "missing"))?,
        arguments: arguments(function.take_raw("arguments")),
    })
}

/// Returns the arguments of a call: JSON text in a text, or the JSON itself.
pub(super) fn arguments(given: Option<&RawValue>) -> String {
    let json = given.map_or("{}", RawValue::get);
    match serde_json::from_str::<String>(json) {
        Ok(text) if text.trim().is_empty() => "{}".to_owned(),
        Ok(text) => text,
        Err(_) => json.to_owned(),
    }
}

/// What stands between the parts of a content, as vLLM and llama.cpp have it.
const BETWEEN_PARTS: &str = "\n";

/// Reads the text of a content.
pub(super) fn text(path: &str, content: &RawValue, types: &[&str]) -> Result<String, BadField> {
    match TextOrList::of_json(content.get(), MAX_PARTS) {
        Ok(TextOrList::Text(text)) => Ok(text),
        Ok(TextOrList::List(parts)) => {
            let parts = parts.into_iter().enumerate();
            let texts = parts.map(|(at, part)| part_text(&format!("{path}.{at}"), part, types));
            Ok(texts.collect::<Result<Vec<_>, _>>()?.join(BETWEEN_PARTS))
        }
        Err(error) if error.to_string().contains("expected at most") => {
            Err(BadField::new(path, problem(&error)))
        }
        Err(_) => Err(BadField::new(path, "expected a text, or a list of parts")),
    }
}

/// Reads the text of a part of a content.
fn part_text(path: &str, part: &RawValue, types: &[&str]) -> Result<String, BadField> {
    if !part.get().starts_with('{') {
        let problem = format!("expected {{\"type\": \"{}\", \"text\": ...}}", types[0]);
        return Err(BadField::new(path, problem));
    }
    let mut fields = JsonFields::within(path, part)?;
    let kind: String = fields.take("type")?.unwrap_or_default();
    // What a model refused, in an answer that is sent back.
    if kind == "refusal" {
        return Ok(fields.take("refusal")?.unwrap_or_default());
    }
    if !types.contains(&&kind[..]) {
        let problem = format!(
            "{} is not supported, expected {}; nothing is ever fetched from addresses in messages",
            name(&kind),
            types.join(" or ")
        );
        return Err(BadField::new(format!("{path}.type"), problem));
    }
    let text: Option<String> = fields.take("text")?;
    text.ok_or_else(|| BadField::new(format!("{path}.text"), "missing"))
}

/// Quotes the name of a type for an error.
fn name(kind: &str) -> String {
    format!("'{}'", quoted(kind))
}
