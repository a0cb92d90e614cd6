//! The turns of a conversation.

use serde_json::Value;
use serde_json::value::RawValue;
use wire::bounds::MAX_MESSAGES;
use wire::status::BadField;
use wire::v1;

use super::fields::{JsonFields, TextOrList, problem, quoted};
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

fn turn(path: &str, message: &RawValue, types: &[&str]) -> Result<v1::ChatMessage, BadField> {
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
    fields.only("tool_calls", &[Value::Array(Vec::new())])?;
    let speaker: Option<String> = fields.take("name")?;
    let missing = |name: &str| BadField::new(format!("{path}.{name}"), "missing");
    let role = role.ok_or_else(|| missing("role"))?;
    let content = match content {
        Some(content) => text(&format!("{path}.content"), content, types)?,
        // An answer of nothing.
        None if role == "assistant" => String::new(),
        None => return Err(missing("content")),
    };
    Ok(v1::ChatMessage {
        role,
        content,
        name: speaker.unwrap_or_default(),
    })
}

/// What stands between the parts of a content, as vLLM and llama.cpp have it.
const BETWEEN_PARTS: &str = "\n";

/// Reads the text of a content.
fn text(path: &str, content: &RawValue, types: &[&str]) -> Result<String, BadField> {
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
