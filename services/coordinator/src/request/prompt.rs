//! The prompt of a request, in tokens.

use speculation::TokenId;
use wire::status::BadField;
use wire::v1::ChatMessage;
use wire::v1::generate_request::Prompt;

use super::limits::{MAX_BYTES_PER_TOKEN, MAX_MESSAGES, MAX_NAME_BYTES};
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
        Some(Prompt::Text(prompt)) if prompt.is_empty() => return Err(empty()),
        Some(Prompt::Text(prompt)) => {
            check_bytes(prompt.len(), target.description.context_len)?;
            let encoded = target.text.tokenizer.encode_fast(prompt, true);
            encoded
                .map_err(|error| BadField::new("prompt", error.to_string()))?
                .get_ids()
                .to_vec()
        }
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

/// The tokens of a conversation, by the model's chat template.
fn chat_tokens(messages: &[ChatMessage], target: &Target) -> Result<Vec<TokenId>, BadField> {
    let bad = |problem: String| BadField::new("messages", problem);
    if messages.len() > MAX_MESSAGES {
        let found = messages.len();
        return Err(bad(format!(
            "{found} turns, expected at most {MAX_MESSAGES}"
        )));
    }
    if let Some(turn) = messages.iter().position(|message| message.role.is_empty()) {
        return Err(bad(format!(
            "turn {turn} has no role, expected system, user or assistant"
        )));
    }
    if let Some(turn) = messages
        .iter()
        .position(|message| message.role.len() > MAX_NAME_BYTES)
    {
        let found = messages[turn].role.len();
        return Err(bad(format!(
            "the role of turn {turn} has {found} bytes, expected at most {MAX_NAME_BYTES}"
        )));
    }
    let bytes = messages.iter().map(|message| message.content.len()).sum();
    check_bytes(bytes, target.description.context_len)?;
    let template = target
        .text
        .chat
        .as_ref()
        .map_err(|problem| bad(problem.clone()))?;
    let prompt = template
        .render(messages)
        .map_err(|error| bad(error.to_string()))?;
    check_bytes(prompt.len(), target.description.context_len)?;
    // The template writes all special tokens itself.
    let encoded = target.text.tokenizer.encode_fast(prompt, false);
    let encoded = encoded.map_err(|error| bad(error.to_string()))?;
    Ok(encoded.get_ids().to_vec())
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
