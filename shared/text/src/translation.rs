//! A target's text in the tokens of a draft model of another vocabulary, and what that model drafts in the target's.
//!
//! Drafts are guesses, so nothing here has to be exact: what a draft costs if it is wrong is a row. What is never done is
//! to read a token as one that it is not: a special token is mapped by its name, or left out, and drafts whose bytes do not
//! come back the same, as behind a normaliser, are dropped.

mod following;

use std::collections::HashMap;
use std::sync::Arc;

use speculation::TokenId;

use crate::ServedText;

pub use following::TranslatedText;

/// What stands before a text that is tokenised as if other text came before it, for tokenizers treat the beginning of a text
/// otherwise: the first of them that does not join with the text, which begins with a space or not.
const BEFORE_SPACE: [&str; 2] = ["a", "."];
const BEFORE_OTHERS: [&str; 4] = ["\n", "a", "1", "."];

/// A vocabulary that texts are continued in.
#[derive(Debug)]
struct Continued {
    text: Arc<ServedText>,
    /// The tokens of what stands before, in their order.
    before_space: [Vec<TokenId>; 2],
    before_others: [Vec<TokenId>; 4],
}

/// The vocabularies of a target and of a draft model.
#[derive(Debug)]
pub struct Translator {
    target: Continued,
    draft: Continued,
    /// For each draft token the target's token of the same bytes.
    images: Vec<Option<TokenId>>,
    /// The draft tokens that no text is written by.
    special: Vec<TokenId>,
}

impl Translator {
    /// Returns the translator between a target whose token ids are below `target_vocab`, and a draft model whose ids are below
    /// `draft_vocab`. That takes a while.
    pub fn new(
        (target, target_vocab): (Arc<ServedText>, u32),
        (draft, draft_vocab): (Arc<ServedText>, u32),
    ) -> Self {
        let (target, draft) = (Continued::of(target), Continued::of(draft));
        let mut by_bytes: HashMap<Vec<u8>, TokenId> = HashMap::new();
        for token in (0..target_vocab).filter(|&token| !target.text.is_special(token)) {
            let bytes = target.text.token_bytes(token);
            // Of several, as a byte and the letter that it is, a text is written by one.
            let is_usual = || target.tokens(&String::from_utf8_lossy(&bytes)) == [token];
            if !bytes.is_empty() && (!by_bytes.contains_key(&bytes) || is_usual()) {
                by_bytes.insert(bytes, token);
            }
        }
        let (special, plain): (Vec<_>, Vec<_>) =
            (0..draft_vocab).partition(|&token| draft.text.is_special(token));
        let mut images = vec![None; draft_vocab as usize];
        for token in plain {
            images[token as usize] = by_bytes.get(&draft.text.token_bytes(token)).copied();
        }
        Self {
            target,
            draft,
            images,
            special,
        }
    }

    /// Returns the target's token of the same bytes as a draft token, if there is one.
    pub fn image(&self, draft: TokenId) -> Option<TokenId> {
        self.images.get(draft as usize).copied().flatten()
    }

    /// Returns the share of the draft model's tokens that have such a token.
    pub fn shared(&self) -> f64 {
        let with = self.images.iter().flatten().count();
        with as f64 / self.images.len().max(1) as f64
    }

    /// Returns the draft tokens that no text is written by.
    pub fn special(&self) -> &[TokenId] {
        &self.special
    }

    /// Returns what a draft token is written as; nothing for a special one.
    pub fn drafted(&self, token: TokenId) -> Vec<u8> {
        self.draft.written(token)
    }

    /// Returns what a token of the target is written as; nothing for a special one.
    pub fn written(&self, token: TokenId) -> Vec<u8> {
        self.target.written(token)
    }

    /// Returns the target's tokens of `text`, bytes of UTF-8 that continue another text, up to an incomplete character, and as
    /// far as the tokens are written like the text.
    pub fn in_target(&self, text: &[u8]) -> Vec<TokenId> {
        let mut tokens = self.target.tokens(complete(text));
        let mut rest = text;
        let same = tokens.iter().take_while(|&&token| {
            let bytes = self.target.written(token);
            let left = rest.strip_prefix(&bytes[..]);
            rest = left.unwrap_or_default();
            left.is_some() && !bytes.is_empty()
        });
        let same = same.count();
        tokens.truncate(same);
        tokens
    }
}

/// Returns `text` up to what is no character, or not yet one.
fn complete(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

impl Continued {
    fn of(text: Arc<ServedText>) -> Self {
        let tokens = |before: &str| plain(&text, before);
        Self {
            before_space: BEFORE_SPACE.map(tokens),
            before_others: BEFORE_OTHERS.map(tokens),
            text,
        }
    }

    fn written(&self, token: TokenId) -> Vec<u8> {
        if self.text.is_special(token) {
            Vec::new()
        } else {
            self.text.token_bytes(token)
        }
    }

    /// Returns the tokens of `text`, which continues another text; none of what the tokenizer does not take.
    fn tokens(&self, text: &str) -> Vec<TokenId> {
        if text.is_empty() {
            return Vec::new();
        }
        let (before, leads) = if text.starts_with(char::is_whitespace) {
            (&BEFORE_SPACE[..], &self.before_space[..])
        } else {
            (&BEFORE_OTHERS[..], &self.before_others[..])
        };
        for (before, lead) in before.iter().zip(leads) {
            let mut both = plain(&self.text, &format!("{before}{text}"));
            if both.starts_with(lead) {
                both.drain(..lead.len());
                return both;
            }
        }
        plain(&self.text, text)
    }
}

/// Returns the tokens of `text` by itself.
fn plain(vocabulary: &ServedText, text: &str) -> Vec<TokenId> {
    let tokens = vocabulary.tokens(text, false, usize::MAX);
    tokens.unwrap_or_default()
}

#[cfg(test)]
mod tests;
