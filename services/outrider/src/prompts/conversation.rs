//! The first question of a conversation, and the answer that it got.

use serde_json::Value;

use super::fields::{Fields, described};

/// What of a conversation is an example.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FirstTurn {
    /// What the user says first, behind what the model is told before it: an empty line is between them.
    pub(super) prompt: String,
    /// What was answered to it, where it was.
    pub(super) answer: Option<String>,
}

/// Reads the turns of `conversation`, each with who speaks in the field `speaker` and what is said in `said`; none if no
/// user speaks in it.
///
/// # Errors
/// Says what of a turn is wrong.
pub(super) fn first_turn(
    conversation: &[Fields<'_>],
    (speaker, said): (&str, &str),
) -> Result<Option<FirstTurn>, String> {
    let mut before = Vec::new();
    let mut turns = conversation.iter();
    while let Some(turn) = turns.next() {
        match turn.text(speaker)?.as_str() {
            "system" | "developer" => before.push(spoken(*turn, said)?),
            "human" | "user" => {
                before.push(spoken(*turn, said)?);
                let answer = match turns.next() {
                    Some(next) if is_model(&next.text(speaker)?) => Some(spoken(*next, said)?),
                    _ => None,
                };
                let answer = answer.filter(|answer| !answer.is_empty());
                let prompt = before.join("\n\n");
                return Ok(Some(FirstTurn { prompt, answer }));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn is_model(speaker: &str) -> bool {
    ["assistant", "gpt", "chatgpt", "model", "bot"].contains(&speaker)
}

/// Returns what is said in a turn: a text, or a list of parts whose texts follow one another; nothing where the turn is
/// only calls.
fn spoken(turn: Fields<'_>, said: &str) -> Result<String, String> {
    match turn.value(said) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| match part.get("text").and_then(Value::as_str) {
                Some(text) => Ok(text.to_owned()),
                None => Err(format!("'{said}' has a part without a text")),
            };
            parts.iter().map(text).collect()
        }
        Some(value) => Err(format!(
            "'{said}' is {}, expected a text or a list of parts",
            described(value)
        )),
    }
}
