//! The prompt of a request, in tokens.

use std::sync::Arc;

use fleet::Target;
use speculation::TokenId;
use speculation::methods::Choice;
use wire::bounds::MAX_MESSAGES;
use wire::status::BadField;
use wire::v1::generate_request::Prompt;
use wire::v1::{self, ChatMessage};

use super::calls::{Calls, settle_turns};
use crate::limits::{MAX_BYTES_PER_TOKEN, MAX_NAME_BYTES};

/// A prompt that was taken from a request, and is still to become tokens.
#[derive(Debug)]
pub(crate) enum PromptInput {
    /// Tokens as they came.
    Tokens(Vec<TokenId>),
    /// A text as it came, before which stand the tokens that the tokenizer adds to every text.
    Plain(String),
    /// A conversation laid out by the model's chat template.
    Chat(String),
}

impl PromptInput {
    /// Takes the prompt of `request`, which is text, tokens, or a conversation that may have `calls`.
    ///
    /// # Errors
    /// Names the field that is missing or too long.
    pub(crate) fn take(
        request: &mut v1::GenerateRequest,
        target: &Target,
        calls: &mut Calls,
    ) -> Result<Self, BadField> {
        let messages = &mut request.messages;
        match request.prompt.take() {
            Some(_) if !messages.is_empty() => {
                let problem = "given beside text or token_ids, expected one of them";
                Err(BadField::new("messages", problem))
            }
            None if !messages.is_empty() => chat(messages, target, calls).map(Self::Chat),
            None => Err(empty()),
            Some(Prompt::Text(text)) => {
                check_bytes(text.len(), target.description.context_len)?;
                Ok(Self::Plain(text))
            }
            Some(Prompt::TokenIds(tokens)) => Ok(Self::Tokens(tokens.ids)),
        }
    }

    /// Returns the text that is to be tokenised, if there is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Tokens(_) => None,
            Self::Plain(text) | Self::Chat(text) => Some(text),
        }
    }

    /// Returns its tokens.
    ///
    /// # Errors
    /// Names the field that is too long, or out of range.
    pub(super) fn tokens(self, target: &Target) -> Result<Vec<TokenId>, BadField> {
        let tokens = match self {
            Self::Tokens(tokens) => tokens,
            Self::Plain(text) => {
                let tokens = encoded("prompt", &text, true, target)?;
                if text.is_empty() && tokens.is_empty() {
                    let problem = "empty, and the model's tokenizer adds no start token; expected at least one token";
                    return Err(BadField::new("prompt", problem));
                }
                tokens
            }
            Self::Chat(text) => encoded("messages", &text, false, target)?,
        };
        if tokens.is_empty() {
            return Err(empty());
        }
        BadField::in_vocabulary("prompt", &tokens, target.description.vocab_size)?;
        Ok(tokens)
    }
}

fn empty() -> BadField {
    BadField::new("prompt", "empty, expected at least one token")
}

/// Returns the tokens of `text`, which came in `field`: no more than the model's context holds.
fn encoded(
    field: &str,
    text: &str,
    is_plain: bool,
    target: &Target,
) -> Result<Vec<TokenId>, BadField> {
    let context_len = target.description.context_len;
    let tokens = target.text.tokens(text, is_plain, context_len as usize);
    let tokens = tokens.map_err(|problem| BadField::new(field, problem))?;
    if tokens.len() > context_len as usize {
        let excess = "more tokens are in the prompt alone: shorten it";
        return Err(BadField::beyond_context("prompt", context_len, excess));
    }
    Ok(tokens)
}

/// Returns the tokens of a prediction of the output; no more of them than the model's context holds.
///
/// # Errors
/// If the text cannot be tokenised.
pub(super) fn predicted(text: &str, target: &Target) -> Result<Arc<[TokenId]>, BadField> {
    let most = target.description.context_len as usize;
    let tokens = target.text.tokens(text, false, most);
    let mut tokens = tokens.map_err(|problem| BadField::new("prediction", problem))?;
    tokens.truncate(most);
    Ok(tokens.into())
}

/// Says that a prediction is of no use to `method`.
pub(super) fn not_streamed(method: &Choice) -> String {
    let name = method.name();
    format!(
        "prediction: left out, '{name}' as it is asked for takes no drafts while the target decodes"
    )
}

/// Returns the prompt of a conversation, by the model's chat template.
fn chat(
    messages: &mut [ChatMessage],
    target: &Target,
    calls: &mut Calls,
) -> Result<String, BadField> {
    let bad = |problem: String| BadField::new("messages", problem);
    BadField::at_most("messages", messages.len(), MAX_MESSAGES, "turns")?;
    for (turn, message) in messages.iter().enumerate() {
        if message.role.is_empty() {
            let problem = "has no role, expected system, user or assistant";
            return Err(bad(format!("turn {turn} {problem}")));
        }
        let ids = message
            .tool_calls
            .iter()
            .map(|call| ("id of a call", call.id.len()));
        let names = [
            ("role", message.role.len()),
            ("name", message.name.len()),
            ("tool_call_id", message.tool_call_id.len()),
        ];
        for (what, found) in names.into_iter().chain(ids) {
            if found > MAX_NAME_BYTES {
                let problem = format!("has {found} bytes, expected at most {MAX_NAME_BYTES}");
                return Err(bad(format!("the {what} of turn {turn} {problem}")));
            }
        }
    }
    let context_len = target.description.context_len;
    let bytes = messages.iter().map(bytes_of).sum();
    check_bytes(bytes, context_len)?;
    settle_turns(messages)?;
    let prompt = calls.prompt(messages, target).map_err(bad)?;
    check_bytes(prompt.len(), context_len)?;
    Ok(prompt)
}

/// Returns the bytes of what a turn says.
fn bytes_of(message: &ChatMessage) -> usize {
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| call.name.len() + call.arguments.len());
    message.content.len() + message.reasoning.len() + calls.sum::<usize>()
}

/// Refuses at sight what cannot fit: turning it into tokens first would take long.
pub(crate) fn check_bytes(bytes: usize, context_len: u32) -> Result<(), BadField> {
    let most = (context_len as usize).saturating_mul(MAX_BYTES_PER_TOKEN);
    if bytes <= most {
        return Ok(());
    }
    let excess = format!("{bytes} bytes are in the prompt, which cannot fit: shorten it");
    Err(BadField::beyond_context("prompt", context_len, &excess))
}

#[cfg(test)]
mod tests;
