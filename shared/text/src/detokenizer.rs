//! Tokens turned into text as they come, whole characters only.

use std::str;

use crate::vocabulary::{TokenPiece, TokenText};

/// Most pieces looked at beside the next. One with text is enough; what is more has none.
const MAX_CONTEXT: usize = 8;

/// Turns a growing list of tokens into text. A character split over tokens comes with the token that completes it.
/// Special tokens have no text.
///
/// The tokens of a text give that text. Where tokens are no text, what was given out stays, and only bytes that can
/// never become a character turn into U+FFFD. `Tokenizer::decode` of all tokens at once gives more of them under
/// byte fallback: one for every byte of a run of byte tokens if any of them is amiss, whole characters included.
///
/// The tokenizers crate has a `DecodeStream` for this, but it cannot be flushed at the end, waits without bound on
/// bytes that never make a character, and fails on some decoders.
#[derive(Debug, Default)]
pub(crate) struct Detokenizer {
    characters: Characters,
    /// The latest pieces, because decoders look at a piece's neighbours and treat the first one otherwise.
    context: Vec<String>,
    /// Text of `context`, which was given out.
    given: String,
}

impl Detokenizer {
    /// Text after `prompt`. Its end is the context of the first new token.
    pub(crate) fn after(vocabulary: &TokenText, prompt: &[u32]) -> Self {
        let pieces = prompt.iter().rev().filter_map(|&id| vocabulary.piece(id));
        let pieces: Vec<_> = pieces.take(MAX_CONTEXT).collect();
        let mut detokenizer = Self::default();
        for piece in pieces.into_iter().rev() {
            detokenizer.push_piece(vocabulary, piece);
        }
        detokenizer
    }

    /// Returns the new text that `token` completes; may be empty.
    pub(crate) fn push(&mut self, vocabulary: &TokenText, token: u32) -> String {
        match vocabulary.piece(token) {
            Some(piece) => self.push_piece(vocabulary, piece),
            None => String::new(),
        }
    }

    /// Returns what stands for a character that is incomplete at the end.
    pub(crate) fn finish(&mut self, vocabulary: &TokenText) -> String {
        match self.characters.finish() {
            "" => String::new(),
            text => self.push_text(vocabulary, text),
        }
    }

    fn push_piece(&mut self, vocabulary: &TokenText, piece: TokenPiece) -> String {
        match piece {
            TokenPiece::Bytes(bytes) => match self.characters.push(&bytes).as_str() {
                "" => String::new(),
                text => self.push_text(vocabulary, text),
            },
            TokenPiece::Text(text) => self.finish(vocabulary) + &self.push_text(vocabulary, &text),
        }
    }

    fn push_text(&mut self, vocabulary: &TokenText, piece: &str) -> String {
        self.context.push(piece.to_owned());
        let text = vocabulary.decode(&self.context);
        let new = suffix_after(&text, &self.given).to_owned();
        self.shorten_context(vocabulary);
        new
    }

    /// Keeps the latest pieces as far as they are needed: a piece that has text beside none before it is the first
    /// no more, and takes upon itself whatever a decoder does at the beginning.
    fn shorten_context(&mut self, vocabulary: &TokenText) {
        let len = self.context.len();
        for kept in 1..=len {
            self.given = vocabulary.decode(&self.context[len - kept..]);
            if !self.given.is_empty() || kept == MAX_CONTEXT {
                self.context.drain(..len - kept);
                break;
            }
        }
    }
}

/// Returns what `text` has suffix_after `given`. A decoder that changes what stood before gets that as it was, and then all
/// that is new.
fn suffix_after<'a>(text: &'a str, given: &str) -> &'a str {
    let pairs = text.chars().zip(given.chars());
    let same = pairs.take_while(|(new, old)| new == old);
    let len = same.map(|(c, _)| c.len_utf8()).sum::<usize>();
    &text[len..]
}

/// Puts UTF-8 characters together.
#[derive(Clone, Debug, Default)]
struct Characters {
    /// The beginning of a character, at most three bytes.
    open: Vec<u8>,
}

impl Characters {
    /// Returns the characters that `bytes` complete. What can never become a character, however it went on, is
    /// U+FFFD, one for each longest beginning of a character, as [`String::from_utf8_lossy`] has it.
    fn push(&mut self, bytes: &[u8]) -> String {
        self.open.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.open.as_slice();
        while let Err(error) = str::from_utf8(rest) {
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(valid).unwrap_or_default());
            rest = invalid;
            let Some(len) = error.error_len() else {
                self.open = rest.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[len..];
        }
        text.push_str(str::from_utf8(rest).unwrap_or_default());
        self.open.clear();
        text
    }

    /// Returns what stands for a character that is not completed; empty if there is none.
    fn finish(&mut self) -> &'static str {
        if self.open.is_empty() {
            return "";
        }
        self.open.clear();
        "\u{FFFD}"
    }
}

#[cfg(test)]
mod tests;
