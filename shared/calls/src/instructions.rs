//! What models are told whose templates know no tools: the system message describes the tools and the form of a call, and
//! calls and their results stand in the conversation as text.

use std::fmt::Write;

use serde_json::{Value, json};
use wire::v1::ChatMessage;

use crate::tools::{Tools, WhetherToCall};

/// Returns what the system message says of `tools`.
pub fn instructions(tools: &Tools) -> String {
    let descriptions: Vec<String> = match tools.to_template() {
        Value::Array(tools) => tools.iter().map(Value::to_string).collect(),
        _ => Vec::new(),
    };
    let when = match tools.whether() {
        Some(WhetherToCall::Required) => "Call one now",
        Some(WhetherToCall::Named(name)) => &format!("Call {name} now"),
        _ => "If one helps, call it",
    };
    format!(
        "You can call these functions, each described in JSON:\n{}\n{when} by writing nothing but its name and its \
         arguments as JSON, in this form:\n<tool_call>\n{{\"name\": \"NAME\", \"arguments\": {{}}}}\n</tool_call>\n\
         The result then comes as <tool_response>.",
        descriptions.join("\n")
    )
}

/// Returns `messages` for a template that knows no tools: `instructions` in the system message, calls and results as text.
/// Results of one turn are one message, since many templates refuse two messages of one role in a row.
pub fn instructed(messages: &[ChatMessage], instructions: &str) -> Vec<ChatMessage> {
    let mut out: Vec<ChatMessage> = Vec::with_capacity(messages.len() + 1);
    let mut of_tool = false;
    for message in messages {
        let is_tool = message.role == "tool";
        let mut turn = ChatMessage {
            role: message.role.clone(),
            content: message.content.clone(),
            name: message.name.clone(),
            reasoning: message.reasoning.clone(),
            ..Default::default()
        };
        for call in &message.tool_calls {
            let arguments = serde_json::from_str(&call.arguments);
            let arguments: Value = arguments.unwrap_or_else(|_| json!(call.arguments));
            let call = json!({ "name": call.name, "arguments": arguments });
            if !turn.content.is_empty() {
                turn.content.push('\n');
            }
            // Writing to a text does not fail.
            let _ = write!(turn.content, "<tool_call>\n{call}\n</tool_call>");
        }
        if is_tool {
            let result = format!("<tool_response>\n{}\n</tool_response>", message.content);
            if let Some(last) = out.last_mut().filter(|_| of_tool) {
                last.content.push('\n');
                last.content.push_str(&result);
                continue;
            }
            turn = ChatMessage {
                role: "user".to_owned(),
                content: result,
                ..Default::default()
            };
        }
        of_tool = is_tool;
        out.push(turn);
    }
    if instructions.is_empty() {
        return out;
    }
    match out.first_mut() {
        Some(first) if matches!(&*first.role, "system" | "developer") => {
            first.content.push_str("\n\n");
            first.content.push_str(instructions);
        }
        _ => out.insert(
            0,
            ChatMessage {
                role: "system".to_owned(),
                content: instructions.to_owned(),
                ..Default::default()
            },
        ),
    }
    out
}
