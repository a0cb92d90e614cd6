//! The prompt of a request, in tokens.

use speculation::TokenId;
use wire::bounds::MAX_MESSAGES;
use wire::status::BadField;
use wire::v1::ChatMessage;
use wire::v1::generate_request::Prompt;

use super::limits::{MAX_BYTES_PER_TOKEN, MAX_NAME_BYTES};
use crate::peer::pool::Target;

/// The tokens of a prompt that is given as text, as tokens, or as a conversation.
///
/// # Errors
/// Names the field that is missing, too long, or out of range.
pub(super) fn prompt_tokens(
    prompt: Option<Prompt>,
    messages: &[ChatMessage],
    target: &Target,
) -> Result<Vec<TokenId>, BadField> {
    let empty = || BadField::new("prompt", "empty, expected at least one token");
    let tokens = match prompt {
        Some(_) if !messages.is_empty() => {
            let problem = "given beside text or token_ids, expected one of them";
            return Err(BadField::new("messages", problem));
        }
        None if !messages.is_empty() => chat_tokens(messages, target)?,
        None => return Err(empty()),
        Some(Prompt::Text(prompt)) => plain_tokens(prompt, target)?,
        Some(Prompt::TokenIds(tokens)) => tokens.ids,
    };
    if tokens.is_empty() {
        return Err(empty());
    }
    let vocab_size = target.description.vocab_size;
    if let Some(token) = tokens.iter().find(|&&token| token >= vocab_size) {
        let problem = format!("token id {token} is out of range, the vocabulary has {vocab_size}");
        return Err(BadField::new("prompt", problem));
    }
    Ok(tokens)
}

/// The tokens of a text as it is. Of an empty one they are those that the tokenizer adds to every text.
fn plain_tokens(text: String, target: &Target) -> Result<Vec<TokenId>, BadField> {
    check_bytes(text.len(), target.description.context_len)?;
    let is_empty = text.is_empty();
    let encoded = target.text.tokens(text, true);
    let tokens = encoded.map_err(|problem| BadField::new("prompt", problem))?;
    if is_empty && tokens.is_empty() {
        let problem =
            "empty, and the model's tokenizer adds no start token; expected at least one token";
        return Err(BadField::new("prompt", problem));
    }
    Ok(tokens)
}

/// The tokens of a conversation, by the model's chat template.
fn chat_tokens(messages: &[ChatMessage], target: &Target) -> Result<Vec<TokenId>, BadField> {
    let bad = |problem: String| BadField::new("messages", problem);
    BadField::at_most("messages", messages.len(), MAX_MESSAGES, "turns")?;
    for (turn, message) in messages.iter().enumerate() {
        let found = message.role.len();
        if found == 0 {
            let problem = "has no role, expected system, user or assistant";
            return Err(bad(format!("turn {turn} {problem}")));
        }
        if found > MAX_NAME_BYTES {
            let problem = format!("has {found} bytes, expected at most {MAX_NAME_BYTES}");
            return Err(bad(format!("the role of turn {turn} {problem}")));
        }
    }
    let bytes = messages.iter().map(|message| message.content.len()).sum();
    check_bytes(bytes, target.description.context_len)?;
    let prompt = target.text.prompt(messages).map_err(bad)?;
    check_bytes(prompt.len(), target.description.context_len)?;
    target.text.tokens(prompt, false).map_err(bad)
}

/// Refuses at sight what cannot fit: turning it into tokens first would take long.
fn check_bytes(bytes: usize, context_len: u32) -> Result<(), BadField> {
    let most = (context_len as usize).saturating_mul(MAX_BYTES_PER_TOKEN);
    if bytes <= most {
        return Ok(());
    }
    let problem = format!("{bytes} bytes cannot fit the model's context of {context_len} tokens");
    Err(BadField::new("prompt", problem))
}

#[cfg(test)]
mod tests;
