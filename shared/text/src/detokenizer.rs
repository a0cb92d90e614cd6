//! Tokens turned into text as they come, whole characters only.

use tokenizers::Tokenizer;

/// What stands for bytes that are no character, or not yet one.
const REPLACEMENT: char = '\u{FFFD}';

/// Tokens kept as left context of the next, because decoders look at a token's neighbours.
const CONTEXT: usize = 4;

/// Most tokens a character can be split over, one a byte. What is longer without a whole character
/// is no text, and is not waited for.
const LONGEST_CHARACTER: usize = 4;

/// Turns a growing list of tokens into text. A character split over tokens comes with the token
/// that completes it. Special tokens have no text.
///
/// The tokenizers crate has a `DecodeStream` for this, but it cannot be flushed at the end, waits
/// without bound on bytes that never make a character, and fails on some decoders.
#[derive(Debug)]
pub(crate) struct Detokenizer {
    /// The latest tokens; those before are turned into text for good.
    tokens: Vec<u32>,
    /// Text of `tokens` that was given out.
    given: String,
    /// Tokens at the end whose text was not given out yet.
    open: usize,
}

impl Detokenizer {
    /// Text after `prompt`. Its last tokens are the context of the first new one: many decoders drop
    /// the space before the first token they are given.
    pub(crate) fn after(tokenizer: &Tokenizer, prompt: &[u32]) -> Self {
        let mut detokenizer = Self {
            tokens: prompt[prompt.len().saturating_sub(CONTEXT)..].to_vec(),
            given: String::new(),
            open: 0,
        };
        detokenizer.given = detokenizer.decode(tokenizer);
        detokenizer
    }

    /// The new text that `token` completes; may be empty.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> String {
        self.tokens.push(token);
        self.open += 1;
        let text = self.decode(tokenizer);
        if text.ends_with(REPLACEMENT) && self.open < LONGEST_CHARACTER {
            return String::new();
        }
        self.open = 0;
        let new = rest(&text, &self.given);
        self.given = text;
        if self.tokens.len() > 2 * CONTEXT {
            self.tokens.drain(..self.tokens.len() - CONTEXT);
            self.given = self.decode(tokenizer);
        }
        new
    }

    /// Whatever is still open at the end, incomplete characters included.
    pub(crate) fn finish(&mut self, tokenizer: &Tokenizer) -> String {
        rest(&self.decode(tokenizer), &self.given)
    }

    fn decode(&self, tokenizer: &Tokenizer) -> String {
        // Decoding fails only for decoders that are given nothing to work on.
        tokenizer.decode(&self.tokens, true).unwrap_or_default()
    }
}

/// What `text` has beyond `given`. Decoding more tokens can change what stood before only where
/// that was no text; then as much as was given is passed over.
fn rest(text: &str, given: &str) -> String {
    match text.strip_prefix(given) {
        Some(rest) => rest.to_owned(),
        None => text.chars().skip(given.chars().count()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte-level tokenizer whose tokens are the 256 bytes.
    fn bytes() -> Tokenizer {
        let printable = |byte: u8| match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => Some(char::from(byte)),
            _ => None,
        };
        let mut unprintable = 0x100_u32;
        let mut vocab = serde_json::Map::new();
        for byte in 0..=255_u8 {
            let stand_in = printable(byte).or_else(|| {
                unprintable += 1;
                char::from_u32(unprintable - 1)
            });
            vocab.insert(stand_in.expect("a character").to_string(), byte.into());
        }
        let json = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": null, "pre_tokenizer": null, "post_processor": null,
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "model": {"type": "BPE", "dropout": null, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []},
        });
        Tokenizer::from_bytes(json.to_string()).expect("a tokenizer")
    }

    fn pieces(text: &[u8]) -> (Vec<String>, String) {
        let tokenizer = bytes();
        let mut detokenizer = Detokenizer::after(&tokenizer, &[]);
        let push = |&byte: &u8| detokenizer.push(&tokenizer, byte.into());
        let pieces = text.iter().map(push).collect();
        (pieces, detokenizer.finish(&tokenizer))
    }

    #[test]
    fn a_split_character_comes_with_the_token_that_completes_it() {
        let (pieces, rest) = pieces("aé€😀b".as_bytes());
        assert_eq!(pieces, ["a", "", "é", "", "", "€", "", "", "", "😀", "b"]);
        assert_eq!(rest, "");
    }

    #[test]
    fn long_text_comes_out_whole() {
        let text = "Größe, naïveté, 東京, 😀! ".repeat(20);
        let (pieces, rest) = pieces(text.as_bytes());
        assert_eq!(pieces.concat() + &rest, text);
    }

    #[test]
    fn what_is_no_text_is_not_waited_for() {
        let (pieces, rest) = pieces(&[b'a', 0xFF, 0xFF, 0xFF, 0xFF, b'b', 0xE2, 0x82]);
        assert!(pieces[4].starts_with(REPLACEMENT), "{pieces:?}");
        assert_eq!(pieces[5], "b");
        assert_eq!(rest, "\u{FFFD}");
    }

    /// Llama 2 and its like: a word's space is part of its token, and the decoder drops the first.
    #[test]
    fn the_space_before_the_first_word_is_kept() {
        let json = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": null, "pre_tokenizer": null, "post_processor": null,
            "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
            "model": {"type": "WordLevel", "unk_token": "▁once",
                "vocab": {"▁once": 0, "▁upon": 1, "▁a": 2, "▁time": 3}},
        });
        let tokenizer = Tokenizer::from_bytes(json.to_string()).expect("a tokenizer");
        let mut detokenizer = Detokenizer::after(&tokenizer, &[0, 1]);
        assert_eq!(detokenizer.push(&tokenizer, 2), " a");
        assert_eq!(detokenizer.push(&tokenizer, 3), " time");
    }
}
