//! The turns of a conversation.

use serde_json::{Map, Value};
use wire::bounds::MAX_MESSAGES;
use wire::status::BadField;
use wire::v1;

use super::fields::Fields;

/// Reads the messages that stand in field `name`. Their contents are texts, or lists of parts of the types `parts`.
///
/// # Errors
/// Names the field that is missing or not supported.
pub(super) fn read(
    name: &str,
    messages: Vec<Map<String, Value>>,
    parts: &[&str],
) -> Result<Vec<v1::ChatMessage>, BadField> {
    if messages.is_empty() {
        return Err(BadField::new(name, "missing, expected at least one"));
    }
    BadField::at_most(name, messages.len(), MAX_MESSAGES, "turns")?;
    let messages = messages.into_iter().enumerate();
    let turns = messages.map(|(index, message)| turn(&format!("{name}.{index}"), message, parts));
    turns.collect()
}

fn turn(
    path: &str,
    message: Map<String, Value>,
    types: &[&str],
) -> Result<v1::ChatMessage, BadField> {
    let mut fields = Fields::within(format!("{path}."), message);
    let role: Option<String> = fields.take("role")?;
    let content = fields.take::<Value>("content")?;
    if let Some(other) = fields
        .take::<String>("type")?
        .filter(|kind| kind != "message")
    {
        let problem = format!(
            "'{other}' is not supported, expected message; nothing is stored here, so send the messages themselves \
             (clients that keep references do so with store false)"
        );
        return Err(BadField::new(format!("{path}.type"), problem));
    }
    for name in ["tool_calls", "annotations"] {
        fields.only(name, &[Value::Array(Vec::new())])?;
    }
    // Clients that send an earlier answer back leave its identifier and status in it.
    for name in ["id", "status"] {
        fields.take::<String>(name)?;
    }
    fields.finish()?;
    let missing = |name: &str| BadField::new(format!("{path}.{name}"), "missing");
    Ok(v1::ChatMessage {
        role: role.ok_or_else(|| missing("role"))?,
        content: match content.ok_or_else(|| missing("content"))? {
            Value::String(text) => text,
            Value::Array(parts) => {
                let parts = parts.into_iter().enumerate();
                let texts =
                    parts.map(|(at, part)| part_text(format!("{path}.content.{at}"), part, types));
                texts.collect::<Result<String, _>>()?
            }
            _ => {
                let problem = "expected a text, or a list of parts";
                return Err(BadField::new(format!("{path}.content"), problem));
            }
        },
    })
}

/// The text of a part of a content.
fn part_text(path: String, part: Value, types: &[&str]) -> Result<String, BadField> {
    let Value::Object(part) = part else {
        let problem = format!("expected {{\"type\": \"{}\", \"text\": ...}}", types[0]);
        return Err(BadField::new(path, problem));
    };
    let mut fields = Fields::within(format!("{path}."), part);
    let kind: String = fields.take("type")?.unwrap_or_default();
    if !types.contains(&&kind[..]) {
        let problem = format!(
            "'{kind}' is not supported, expected {}; nothing is ever fetched from addresses in messages",
            types.join(" or ")
        );
        return Err(BadField::new(format!("{path}.type"), problem));
    }
    let text = fields.take("text")?;
    // Clients that send an earlier answer back leave these lists in it.
    for name in ["annotations", "logprobs"] {
        fields.take::<Vec<Value>>(name)?;
    }
    fields.finish()?;
    text.ok_or_else(|| BadField::new(format!("{path}.text"), "missing"))
}
