//! What a peer's answer must be before it may reach the output.

use super::SessionConfig;
use crate::TokenId;
use crate::verification::LastToken;

/// An answer that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed answer: {0}")]
pub(super) struct Malformed(String);

fn ids(config: &SessionConfig, tokens: &[TokenId]) -> Result<(), Malformed> {
    match tokens.iter().find(|&&token| token >= config.vocab_size) {
        Some(token) => {
            let size = config.vocab_size;
            Err(Malformed(format!(
                "token id {token} is not below the vocabulary's {size}"
            )))
        }
        None => Ok(()),
    }
}

/// Nothing may come after an end token.
fn ends(config: &SessionConfig, tokens: &[TokenId]) -> Result<(), Malformed> {
    let before_last = &tokens[..tokens.len().saturating_sub(1)];
    match before_last
        .iter()
        .position(|token| config.end_tokens.contains(token))
    {
        Some(at) => Err(Malformed(format!(
            "tokens follow the end token at index {at}"
        ))),
        None => Ok(()),
    }
}

pub(super) fn draft(
    config: &SessionConfig,
    max_tokens: u32,
    tokens: &[TokenId],
) -> Result<(), Malformed> {
    if tokens.is_empty() || tokens.len() > max_tokens as usize {
        let found = tokens.len();
        return Err(Malformed(format!(
            "{found} draft tokens, expected 1 to {max_tokens}"
        )));
    }
    ids(config, tokens)?;
    ends(config, tokens)
}

pub(super) fn decoded(
    config: &SessionConfig,
    max_tokens: u32,
    tokens: &[TokenId],
) -> Result<(), Malformed> {
    if tokens.len() > max_tokens as usize {
        let found = tokens.len();
        return Err(Malformed(format!(
            "{found} decoded tokens, expected at most {max_tokens}"
        )));
    }
    ids(config, tokens)?;
    ends(config, tokens)
}

pub(super) fn verdict(
    config: &SessionConfig,
    drafts: &[TokenId],
    emitted: &[TokenId],
    accepted: usize,
    last: LastToken,
) -> Result<(), Malformed> {
    let added = usize::from(last != LastToken::AcceptedEnd);
    if accepted > drafts.len() || emitted.len() != accepted + added {
        let (found, drafted) = (emitted.len(), drafts.len());
        return Err(Malformed(format!(
            "{found} tokens emitted with {accepted} of {drafted} accepted"
        )));
    }
    if emitted[..accepted] != drafts[..accepted] {
        return Err(Malformed(
            "accepted tokens are not those drafted".to_owned(),
        ));
    }
    if (last == LastToken::Bonus) != (accepted == drafts.len()) && last != LastToken::AcceptedEnd {
        return Err(Malformed(
            "bonus and recovered token are confused".to_owned(),
        ));
    }
    let ends_output = emitted
        .last()
        .is_some_and(|token| config.end_tokens.contains(token));
    if last == LastToken::AcceptedEnd && !ends_output {
        return Err(Malformed(
            "no token was added after one that does not end".to_owned(),
        ));
    }
    ids(config, emitted)?;
    ends(config, emitted)
}
