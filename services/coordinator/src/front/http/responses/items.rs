//! The items of a response's input: turns, and between them calls, what they came to, and reasoning.

use serde_json::value::RawValue;
use wire::bounds::MAX_MESSAGES;
use wire::status::BadField;
use wire::v1;

use crate::front::http::fields::{JsonFields, TextOrList, list, quoted};
use crate::front::http::messages;
use crate::limits::MAX_PARTS;

/// Types of the parts of a text.
const PARTS: [&str; 3] = ["input_text", "output_text", "text"];

/// Reads the conversation that stands in `items`.
///
/// # Errors
/// Names the item that is not what it must be.
pub(super) fn read(items: &[&RawValue]) -> Result<Vec<v1::ChatMessage>, BadField> {
    if items.is_empty() {
        return Err(BadField::new(
            "input",
            "missing, expected at least one item",
        ));
    }
    BadField::at_most("input", items.len(), MAX_MESSAGES, "items")?;
    let mut turns: Vec<v1::ChatMessage> = Vec::with_capacity(items.len());
    let mut thought = String::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("input.{index}");
        let mut fields = JsonFields::within(&path, item)?;
        let kind: Option<String> = fields.take("type")?;
        match kind.as_deref() {
            None | Some("message") => {
                let mut turn = messages::turn(&path, item, &PARTS)?;
                if turn.role == "assistant" {
                    turn.reasoning = std::mem::take(&mut thought);
                }
                turns.push(turn);
            }
            Some("reasoning") => thought.push_str(&reasoning(&mut fields)?),
            Some("function_call") => {
                let call = call(&mut fields)?;
                match turns.last_mut() {
                    Some(last) if last.role == "assistant" => last.tool_calls.push(call),
                    _ => turns.push(v1::ChatMessage {
                        role: "assistant".to_owned(),
                        tool_calls: vec![call],
                        reasoning: std::mem::take(&mut thought),
                        ..Default::default()
                    }),
                }
            }
            Some("function_call_output") => turns.push(answer(&path, &mut fields)?),
            Some(other) => {
                let problem = format!(
                    "'{}' is not supported, expected message, function_call, function_call_output or reasoning; nothing \
                     is stored here, so send the items themselves (clients that keep references do so with store false)",
                    quoted(other)
                );
                return Err(fields.error("type", problem));
            }
        }
    }
    Ok(turns)
}

fn call(fields: &mut JsonFields<'_>) -> Result<v1::ToolCall, BadField> {
    let name: Option<String> = fields.take("name")?;
    Ok(v1::ToolCall {
        id: call_id(fields)?,
        name: name.ok_or_else(|| fields.error("name", "missing"))?,
        arguments: messages::arguments(fields.take_raw("arguments")),
    })
}

fn answer(path: &str, fields: &mut JsonFields<'_>) -> Result<v1::ChatMessage, BadField> {
    let output = fields.take_raw("output");
    let output = output.ok_or_else(|| fields.error("output", "missing"))?;
    Ok(v1::ChatMessage {
        role: "tool".to_owned(),
        content: messages::text(&format!("{path}.output"), output, &PARTS)?,
        tool_call_id: call_id(fields)?,
        ..Default::default()
    })
}

fn call_id(fields: &mut JsonFields<'_>) -> Result<String, BadField> {
    let id: Option<String> = fields.take("call_id")?;
    id.ok_or_else(|| fields.error("call_id", "missing"))
}

/// Reads what the model thought: its text, or where there is none, the summary of it.
fn reasoning(fields: &mut JsonFields<'_>) -> Result<String, BadField> {
    for name in ["content", "summary"] {
        let parts = fields.take_by(name, |json| list::<&RawValue>(json, MAX_PARTS))?;
        let mut text = String::new();
        for part in parts.unwrap_or_default() {
            let mut part = JsonFields::within(name, part)?;
            text.push_str(&part.take::<String>("text")?.unwrap_or_default());
        }
        if !text.is_empty() {
            return Ok(text);
        }
    }
    Ok(String::new())
}

/// Reads the input of a request: a text, or items.
///
/// # Errors
/// As [`read`]; or if it is missing.
pub(super) fn input(fields: &mut JsonFields<'_>) -> Result<Vec<v1::ChatMessage>, BadField> {
    let input = fields.take_by("input", |json| TextOrList::of_json(json, MAX_MESSAGES))?;
    match input {
        None => Err(BadField::new("input", "missing")),
        Some(TextOrList::Text(text)) => Ok(vec![turn("user", &text)]),
        Some(TextOrList::List(items)) => read(&items),
    }
}

/// Returns a turn that is text.
pub(super) fn turn(role: &str, content: &str) -> v1::ChatMessage {
    v1::ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    }
}
