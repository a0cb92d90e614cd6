//! Follows a target's sequence in a draft model's tokens.

use std::sync::Arc;

use speculation::TokenId;

use super::{Translator, complete, plain};

/// Most bytes of text whose tokens may still change with what follows. A text without a place to cut, as in base64 or Chinese,
/// is cut there all the same.
const OPEN: usize = 256;

/// Bytes of a text that are tokenised at once.
const PIECE: usize = 4 << 10;

/// What a draft model reads of a target's sequence. What follows a text changes the tokens of its last word, so that word is
/// tokenised anew each time, and what stands before it never.
#[derive(Clone, Debug)]
pub struct TranslatedText {
    translator: Arc<Translator>,
    tokens: Vec<TokenId>,
    /// The first so many tokens stay.
    settled: usize,
    /// The text after those.
    open: Vec<u8>,
    /// Whether text stands before it.
    continues: bool,
    /// Whether any of the text has come.
    has_begun: bool,
}

impl TranslatedText {
    /// Begins with what the draft model's prompts begin with.
    pub fn new(translator: Arc<Translator>) -> Self {
        let begins = translator.draft.text.tokens("", true, usize::MAX);
        // A token that ends prompts, too, stands behind it.
        let begins = begins.unwrap_or_default().into_iter().take(1);
        let tokens: Vec<_> = begins
            .filter(|token| translator.special.contains(token))
            .collect();
        Self {
            settled: tokens.len(),
            tokens,
            translator,
            open: Vec::new(),
            continues: false,
            has_begun: false,
        }
    }

    /// Appends tokens of the target.
    pub fn follow(&mut self, tokens: &[TokenId]) {
        let translator = Arc::clone(&self.translator);
        let target = &translator.target.text;
        for &token in tokens {
            if target.is_special(token) {
                self.settle();
                let name = target.token_bytes(token);
                let same = translator.named(&name);
                let begins = self.tokens.first().copied();
                // What the target's prompts begin with, the draft model's begin with already.
                if let Some(same) = same.filter(|&it| self.continues || begins != Some(it)) {
                    self.tokens.push(same);
                    self.settled += 1;
                }
                // A mark ends a text.
                (self.continues, self.has_begun) = (true, true);
            } else {
                let bytes = target.token_bytes(token);
                // A text that begins with a word has no space there, though its first token has one.
                let is_first = !std::mem::replace(&mut self.has_begun, true);
                let begins = is_first && !target.text_before(&[token]).starts_with(' ');
                let bytes = bytes
                    .strip_prefix(b" ")
                    .filter(|_| begins)
                    .unwrap_or(&bytes);
                self.open.extend_from_slice(bytes);
                if self.open.len() > PIECE {
                    self.cut();
                }
            }
        }
        self.cut();
        self.tokens.truncate(self.settled);
        let open = self.tokenised(complete(&self.open));
        self.tokens.extend(open);
    }

    /// Returns the draft model's tokens, of all but a character that is not complete.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn tokenised(&self, text: &str) -> Vec<TokenId> {
        let draft = &self.translator.draft;
        if self.continues {
            draft.tokens(text)
        } else {
            plain(&draft.text, text)
        }
    }

    /// Settles all text so far.
    fn settle(&mut self) {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned();
        self.settle_as(&text);
    }

    /// Settles what stands before the last word.
    fn cut(&mut self) {
        let text = complete(&self.open);
        let at = match last_word(text) {
            Some(at) => at,
            None if text.len() > OPEN => text.floor_char_boundary(text.len() - OPEN / 4),
            // What is no character never becomes one.
            None if self.open.len() > text.len() + 4 => return self.settle(),
            None => return,
        };
        let rest = self.open.split_off(at);
        let text = std::mem::replace(&mut self.open, rest);
        self.settle_as(complete(&text));
    }

    fn settle_as(&mut self, text: &str) {
        if !text.is_empty() {
            self.tokens.truncate(self.settled);
            let tokens = self.tokenised(text);
            self.tokens.extend(tokens);
            self.settled = self.tokens.len();
            self.continues = true;
        }
    }
}

/// Returns where the last word begins, with its space, that stands after another: tokenizers split there.
fn last_word(text: &str) -> Option<usize> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    let is_cut =
        |&at: &usize| bytes[at] == b' ' && is_word(bytes[at - 1]) && is_word(bytes[at + 1]);
    (1..bytes.len().saturating_sub(1)).rev().find(is_cut)
}

impl Translator {
    /// Returns the draft model's special token of this name.
    fn named(&self, name: &[u8]) -> Option<TokenId> {
        let draft = &self.draft.text;
        let name = std::str::from_utf8(name).ok()?;
        let token = draft.vocabulary.token(name)?;
        draft.is_special(token).then_some(token)
    }
}

#[cfg(test)]
impl TranslatedText {
    /// Bytes whose tokens may still change.
    pub(super) fn open_bytes(&self) -> usize {
        self.open.len()
    }
}
