//! A model's tokenizer: text into tokens, and what each token stands for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::sequence::Sequence;
use tokenizers::normalizers::Replace;
use tokenizers::{Decoder, Tokenizer};

use crate::encoder::PieceEncoder;

/// A piece of text before a token.
const LEAD: &str = "a";

/// Turns text into tokens, and says what each token stands for.
#[derive(Debug)]
pub(crate) struct TokenText {
    tokenizer: Tokenizer,
    encoder: PieceEncoder,
    bytes: ByteTokens,
    /// The replacements of the tokenizer's decoder before a token's characters become bytes.
    replaced: Vec<Replace>,
    /// The steps of the tokenizer's decoder after its tokens are characters; `None` if it has no decoder, which
    /// puts a space between any two tokens.
    decoder: Option<Sequence>,
}

/// What one token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenPiece {
    /// Bytes of UTF-8, perhaps a part of a character.
    Bytes(Vec<u8>),
    /// Whole characters, to be decoded beside those before them.
    Text(String),
}

/// Which tokens stand for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteTokens {
    /// None.
    None,
    /// Those named `<0x00>` to `<0xFF>`, one byte each (SentencePiece's byte fallback).
    Fallback,
    /// All, a character of the token being a byte (GPT-2's byte-level BPE).
    All,
}

impl TokenText {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// Says why it is no tokenizer, or which step of its decoder is not supported.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, String> {
        let mut tokenizer = contained(|| Tokenizer::from_bytes(json))?;
        // Many files carry these from training; they would silently cut or fill prompts.
        tokenizer.with_padding(None);
        // Fails only for a truncation that contradicts itself.
        let _ = tokenizer.with_truncation(None);
        // Each thread would keep the words of its texts, megabytes of them.
        let mut model = tokenizer.get_model().clone();
        model.resize_cache(0);
        tokenizer.with_model(model);
        let mut bytes = ByteTokens::None;
        let mut replaced = Vec::new();
        let mut steps = Vec::new();
        for step in tokenizer.get_decoder().map(flat).unwrap_or_default() {
            match step {
                DecoderWrapper::ByteLevel(_) => {
                    bytes = ByteTokens::All;
                    replaced = steps.iter().filter_map(replacement).collect();
                }
                DecoderWrapper::ByteFallback(_) => bytes = ByteTokens::Fallback,
                // The tokenizers crate panics on text shorter than what it is to strip.
                DecoderWrapper::Strip(strip) if strip.stop > 0 => {
                    return Err("a decoder that strips the end of tokens is not supported".into());
                }
                _ => steps.push(step),
            }
        }
        Ok(Self {
            decoder: tokenizer.get_decoder().map(|_| Sequence::new(steps)),
            bytes,
            replaced,
            encoder: contained(|| PieceEncoder::of(&tokenizer))?,
            tokenizer,
        })
    }

    /// Returns a `tokenizer.json` that is read as the same.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn to_json(&self) -> Result<String, String> {
        contained(|| self.tokenizer.to_string(false))
    }

    /// Returns the tokens of `text`, with the special tokens that prompts begin or end with if `with_special`; if
    /// there are more than `most`, some of the first, but more than that.
    ///
    /// # Errors
    /// Says what the tokenizer does not take.
    pub(crate) fn encode(
        &self,
        text: &str,
        with_special: bool,
        most: usize,
    ) -> Result<Vec<u32>, String> {
        contained(|| {
            self.encoder
                .encode(&self.tokenizer, text, with_special, most)
        })
    }

    /// Returns the most bytes of memory that encoding `text` takes, beside its tokens.
    pub(crate) fn encoding_bytes(&self, text: &str) -> u64 {
        self.encoder.bytes(text)
    }

    /// Returns the token called `name`.
    pub(crate) fn token(&self, name: &str) -> Option<u32> {
        self.tokenizer.token_to_id(name)
    }

    /// Returns what `token` stands for after other text; its name, if it is special.
    pub(crate) fn bytes(&self, token: u32) -> Vec<u8> {
        let name = match self.piece(token) {
            Some(TokenPiece::Bytes(bytes)) => return bytes,
            Some(TokenPiece::Text(name)) => name,
            None => {
                let name = self.tokenizer.id_to_token(token);
                return self.replaced(name.unwrap_or_default()).into_bytes();
            }
        };
        // Decoders treat the first piece of a text otherwise.
        let before = self.decode(&[LEAD.to_owned()]);
        let text = self.decode(&[LEAD.to_owned(), name]);
        let own = text.strip_prefix(&before).unwrap_or(&text);
        own.as_bytes().to_vec()
    }

    /// Returns what `token` stands for; `None` if that is no text, as with special tokens.
    pub(crate) fn piece(&self, token: u32) -> Option<TokenPiece> {
        let name = self.tokenizer.id_to_token(token)?;
        let added = self.tokenizer.get_added_vocabulary();
        if added.is_special_token(&name) {
            return None;
        }
        let bytes = match self.bytes {
            ByteTokens::None => None,
            ByteTokens::Fallback => fallback_byte(&name).map(|byte| vec![byte]),
            // A token that is not made of such characters was added by hand, and stands for itself.
            ByteTokens::All => {
                let name = self.replaced(name.clone());
                let bytes: Option<Vec<u8>> = name.chars().map(byte_level).collect();
                Some(bytes.unwrap_or_else(|| name.into_bytes()))
            }
        };
        Some(bytes.map_or(TokenPiece::Text(name), TokenPiece::Bytes))
    }

    /// Returns a token's name after the replacements before its characters become bytes.
    fn replaced(&self, name: String) -> String {
        self.replaced.iter().fold(name, |name, step| {
            // Fails for expressions that take too long to match.
            let replaced = step.decode_chain(vec![name.clone()]);
            replaced.map_or(name, |names| names.concat())
        })
    }

    /// Returns the text of neighbouring pieces of whole characters, the first of which begins the text: many decoders
    /// drop its space.
    pub(crate) fn decode(&self, pieces: &[String]) -> String {
        match &self.decoder {
            // Some decoders panic where there is nothing.
            _ if pieces.is_empty() => String::new(),
            None => pieces.join(" "),
            // Fails for expressions that take too long to match.
            Some(decoder) => {
                let decoded = decoder.decode(pieces.to_vec());
                decoded.unwrap_or_else(|_| pieces.concat())
            }
        }
    }
}

/// Returns what `call` of the tokenizers crate returns, or that it panicked: it does on files that make no sense, on
/// some that were cut short among them.
fn contained<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(returned) => returned.map_err(|error| error.to_string()),
        Err(_) => Err("the tokenizers library panicked, as it does on broken files".to_owned()),
    }
}

/// Returns the steps of `decoder`, one after another.
fn flat(decoder: &DecoderWrapper) -> Vec<DecoderWrapper> {
    match decoder {
        DecoderWrapper::Sequence(steps) => steps.get_decoders().iter().flat_map(flat).collect(),
        step => vec![step.clone()],
    }
}

fn replacement(step: &DecoderWrapper) -> Option<Replace> {
    match step {
        DecoderWrapper::Replace(replace) => Some(replace.clone()),
        _ => None,
    }
}

/// Returns the byte that the token `name` stands for under byte fallback.
fn fallback_byte(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Returns the byte that `c` stands for in byte-level BPE: itself where it can be printed, else the bytes that
/// cannot, in order, from U+0100 on.
fn byte_level(c: char) -> Option<u8> {
    let code = u32::from(c);
    let byte = match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7F,
        0x143 => 0xAD,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples;

    /// Of two tokens for the same bytes one has a mark in its name that decoding removes.
    #[test]
    fn names_are_replaced_before_they_become_bytes() {
        let json = samples::byte_level(&["A"]);
        let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["model"]["vocab"]["\u{F8FF}\u{120}A"] = 9_000.into();
        let mark = serde_json::json!({"type": "Replace", "pattern": {"String": "\u{F8FF}"}, "content": ""});
        json["decoder"] =
            serde_json::json!({"type": "Sequence", "decoders": [mark, json["decoder"]]});
        let vocabulary = TokenText::from_json(json.to_string().as_bytes()).unwrap();
        let piece = TokenPiece::Bytes(b" A".to_vec());
        assert_eq!(vocabulary.piece(9_000), Some(piece));
        assert_eq!(vocabulary.bytes(9_000), b" A");
    }

    #[test]
    fn a_file_cut_short_anywhere_is_refused() {
        let json = samples::byte_fallback(true, "한국");
        assert!(TokenText::from_json(json.as_bytes()).is_ok());
        for end in 0..json.len() {
            let refused = TokenText::from_json(&json.as_bytes()[..end]);
            assert!(refused.is_err(), "the first {end} bytes");
        }
    }
}
