//! Turns of a conversation as templates get them.

use minijinja::value::Value;
use serde_json::{Map, Value as Json};
use wire::v1::{ChatMessage, ToolCall};

/// How many letters and digits Mistral's templates expect in the id of a call.
const SHORT_ID: usize = 9;

/// How a template gets the arguments of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentsAs {
    Value,
    Text,
}

/// How turns are turned into values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// What the role `developer` is called.
    pub(super) developer: &'static str,
    /// Whether ids of calls are cut to their last letters and digits.
    pub(super) short_ids: bool,
    pub(super) arguments_as: ArgumentsAs,
}

impl Turns {
    /// Returns a turn. Templates ask whether there is a name, a call and so on, so what is empty is left out.
    pub(super) fn value(self, message: &ChatMessage) -> Value {
        let ChatMessage {
            role,
            content,
            name,
            tool_calls,
            tool_call_id,
            reasoning,
        } = message;
        let role = match role.as_str() {
            super::DEVELOPER => self.developer,
            role => role,
        };
        let mut fields = vec![
            ("role", Value::from(role)),
            ("content", Value::from(content)),
        ];
        if !name.is_empty() {
            fields.push(("name", Value::from(name)));
        }
        if !tool_calls.is_empty() {
            let calls: Vec<Value> = tool_calls.iter().map(|call| self.call(call)).collect();
            fields.push(("tool_calls", Value::from(calls)));
        }
        if !tool_call_id.is_empty() {
            fields.push(("tool_call_id", Value::from(self.id(tool_call_id))));
        }
        if !reasoning.is_empty() {
            // The name that most templates have, and that of gpt-oss.
            for name in ["reasoning_content", "thinking"] {
                fields.push((name, Value::from(reasoning)));
            }
        }
        Value::from_pairs(fields)
    }

    fn call(self, call: &ToolCall) -> Value {
        let arguments = match serde_json::from_str::<Json>(&call.arguments) {
            Ok(arguments @ Json::Object(_)) if self.arguments_as == ArgumentsAs::Value => {
                value_of(&arguments)
            }
            _ => Value::from(&call.arguments),
        };
        let function =
            Value::from_pairs([("name", Value::from(&call.name)), ("arguments", arguments)]);
        Value::from_pairs([
            ("id", Value::from(self.id(&call.id))),
            ("type", Value::from("function")),
            ("function", function),
        ])
    }

    fn id(self, id: &str) -> String {
        if !self.short_ids {
            return id.to_owned();
        }
        let signs: Vec<char> = id.chars().filter(char::is_ascii_alphanumeric).collect();
        let last = &signs[signs.len().saturating_sub(SHORT_ID)..];
        format!("{:0>SHORT_ID$}", String::from_iter(last))
    }
}

/// Returns JSON as templates get it.
pub(super) fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => items.iter().map(value_of).collect(),
        Json::Object(fields) => of_fields(fields),
    }
}

/// Returns the fields of an object as templates get it.
pub(super) fn of_fields(fields: &Map<String, Json>) -> Value {
    Value::from_pairs(fields.iter().map(|(name, value)| (name, value_of(value))))
}

/// Puts the functions of `tools` into the system message, as JSON text; if there is none, into a new one.
pub(super) fn add_tools(messages: &mut Vec<Value>, tools: &Json) {
    let functions = tools.as_array().into_iter().flatten();
    let functions: Vec<&Json> = functions.map(|tool| &tool["function"]).collect();
    let json = serde_json::to_string(&functions).unwrap_or_default();
    let attribute = |message: &Value, name: &str| message.get_attr(name).unwrap_or_default();
    let is_system = |message: &Value| attribute(message, "role").as_str() == Some(super::SYSTEM);
    let content = match messages.first() {
        Some(first) if is_system(first) => {
            let content = attribute(first, "content");
            messages.remove(0);
            content
        }
        _ => Value::from(""),
    };
    let system = Value::from_pairs([
        ("role", Value::from(super::SYSTEM)),
        ("content", content),
        ("tools", Value::from(json)),
    ]);
    messages.insert(0, system);
}
