//! A tokenizer of which only the tokens are known: what each of their bytes is, and which control the model.
//!
//! Decoding is exact. Text is cut by the merges of the metadata, if there are any, in words as most models have
//! them; without merges the longest token that fits comes first. Both find the model's own tokens mostly, not always.

use llama_cpp::{LlamaVocabulary, VocabularyPiece};
use serde_json::{Map, Value as Json, json};

use super::{begin_and_end, kind};
use crate::gguf::{GgufError, pre_tokenizer::PreTokenizer, value::GgufMetadata};
use crate::tokenizer;

/// Stands once or more before the name of a token whose bytes another has, too; decoding removes it. No text becomes
/// such a name, for it stands for no byte.
const TWIN: char = '\u{F8FF}';

/// Longest word that is looked up, in characters: the time for it is its square.
const WORD: &str = "(?s).{1,200}";

/// The bytes of a `tokenizer.json`.
///
/// # Errors
/// If the metadata contradicts itself.
pub(crate) fn json(
    metadata: &GgufMetadata,
    vocabulary: &LlamaVocabulary,
) -> Result<Vec<u8>, GgufError> {
    let mut names = Map::new();
    let mut added = Vec::new();
    for piece in by_claim(metadata, vocabulary)? {
        let mut name = name(piece);
        while names.contains_key(&name) {
            name.insert(0, TWIN);
        }
        if piece.is_control {
            added.push(
                json!({"id": piece.id, "content": name, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true}),
            );
        }
        names.insert(name, piece.id.into());
    }
    let unknown = metadata.whole("tokenizer.ggml.unknown_token_id")?;
    let unknown = vocabulary
        .pieces
        .iter()
        .find(|piece| Some(u64::from(piece.id)) == unknown);
    let by_length = json!({
        "type": "WordPiece",
        "unk_token": unknown.map_or_else(|| "<unk>".to_owned(), name),
        "continuing_subword_prefix": "",
        "max_input_chars_per_word": 1_000,
        "vocab": names,
    });
    let (_, words) = PreTokenizer::named(Some("smaug-bpe"))?.json();
    let split = json!({"type": "Split", "pattern": {"Regex": WORD}, "behavior": "Isolated",
        "invert": false});
    let whole = |model: Json, pre_tokenizer: Json| -> Result<Vec<u8>, GgufError> {
        let json = json!({
            "version": "1.0",
            "added_tokens": added,
            "normalizer": null,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": begin_and_end(metadata, vocabulary.begins)?,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": TWIN}, "content": ""},
                {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            ]},
            "model": model,
        });
        Ok(json.to_string().into_bytes())
    };
    if let Some(merges) = metadata.strings("tokenizer.ggml.merges")? {
        let by_merges = json!({"type": "BPE", "byte_fallback": false, "vocab": names,
            "merges": merges});
        let json = whole(by_merges, words.clone())?;
        if tokenizer::from_bytes(&json).is_ok() {
            return Ok(json);
        }
    }
    let json = whole(
        by_length,
        json!({"type": "Sequence", "pretokenizers": [split, words]}),
    )?;
    tokenizer::from_bytes(&json).map_err(|error| GgufError::Tokenizer(error.to_string()))?;
    Ok(json)
}

/// The tokens in the order in which they get names: of those that stand for the same bytes the first is the one that
/// text becomes. Tokens of a single byte are there for what no other token has.
fn by_claim<'a>(
    metadata: &GgufMetadata,
    vocabulary: &'a LlamaVocabulary,
) -> Result<Vec<&'a VocabularyPiece>, GgufError> {
    let kinds = metadata.wholes("tokenizer.ggml.token_type")?;
    let kinds = kinds.unwrap_or_default();
    let is_byte = |piece: &VocabularyPiece| kinds.get(piece.id as usize) == Some(&kind::BYTE);
    let mut pieces: Vec<&VocabularyPiece> = vocabulary.pieces.iter().collect();
    pieces.sort_by_key(|piece| (!piece.is_control, is_byte(piece)));
    Ok(pieces)
}

/// A token's name: its bytes, each as the character that stands for it, or its text if it controls the model.
fn name(piece: &VocabularyPiece) -> String {
    if piece.is_control {
        return String::from_utf8_lossy(&piece.bytes).into_owned();
    }
    piece.bytes.iter().map(|&byte| character(byte)).collect()
}

/// The character that stands for a byte in byte-level vocabularies: itself where it can be seen, else one of those
/// from 256 on, in order.
fn character(byte: u8) -> char {
    let is_seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_seen(byte) {
        return byte.into();
    }
    let before = (0..byte).filter(|&other| !is_seen(other)).count();
    char::from_u32(256 + before as u32).unwrap_or('\u{FFFD}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::tests::{array, metadata, strings};
    use crate::tokenizer::token_bound;

    fn vocabulary(tokens: &[&[u8]]) -> LlamaVocabulary {
        let of_bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let longer = tokens.iter().map(|token| token.to_vec());
        let pieces = (1..)
            .zip(of_bytes.chain(longer))
            .map(|(id, bytes)| VocabularyPiece {
                id,
                bytes,
                is_control: false,
            });
        let end = VocabularyPiece {
            id: 0,
            bytes: b"</s>".to_vec(),
            is_control: true,
        };
        LlamaVocabulary {
            pieces: std::iter::once(end).chain(pieces).collect(),
            begins: false,
        }
    }

    #[test]
    fn every_text_is_cut_and_comes_back() {
        let mut vocabulary = vocabulary(&[b" the", b" th", b"\xc3\xa4t", b"the"]);
        // Twins of the token of one byte, whose id is 66.
        vocabulary
            .pieces
            .extend([300, 301].map(|id| VocabularyPiece {
                id,
                bytes: b"A".to_vec(),
                is_control: false,
            }));
        let of_kinds = (0..302_u32).map(|id| match id {
            1..=256 => kind::BYTE as i32,
            _ => kind::NORMAL as i32,
        });
        let of_kinds = [("tokenizer.ggml.token_type", array(of_kinds.collect()))];
        let json = json(&metadata(&of_kinds), &vocabulary).unwrap();
        let tokenizer = tokenizer::from_bytes(&json).unwrap();
        let text = format!("the th\u{e4}tre\n \u{1F600}\0</s>{}", "a".repeat(700));
        let encoded = tokenizer.encode(&text[..], true).unwrap();
        // The longest first: "the", " th", "\u{e4}t"; and the end is one token.
        assert_eq!(encoded.get_ids()[..3], [260, 258, 259]);
        assert_eq!(encoded.get_ids().iter().filter(|id| **id == 0).count(), 1);
        assert_eq!(tokenizer.decode(encoded.get_ids(), false).unwrap(), text);
        for id in [66, 300, 301] {
            assert_eq!(tokenizer.decode(&[id], false).unwrap(), "A", "{id}");
        }
        assert_eq!(tokenizer.encode("A", true).unwrap().get_ids(), [300]);
        assert_eq!(token_bound(&tokenizer), 302);
    }

    #[test]
    fn merges_are_used_where_there_are_any() {
        let vocabulary = vocabulary(&[b"ab", b"bc", b"abc"]);
        let merges = [("tokenizer.ggml.merges", strings(&["b c", "a b"]))];
        let ids = |json: Vec<u8>| {
            let tokenizer = tokenizer::from_bytes(&json).unwrap();
            tokenizer.encode("abc", true).unwrap().get_ids().to_vec()
        };
        let by_merges = json(&metadata(&merges), &vocabulary).unwrap();
        assert_eq!(ids(by_merges), [98, 258]);
        let by_length = json(&metadata(&[]), &vocabulary).unwrap();
        assert_eq!(ids(by_length), [259]);
    }

    #[test]
    fn names_are_those_of_byte_level_vocabularies() {
        assert_eq!(
            [b' ', b'\n', b'a', 0x7F, 0xAD].map(character),
            ['\u{120}', '\u{10A}', 'a', '\u{121}', '\u{143}']
        );
        let all: std::collections::HashSet<char> = (0..=u8::MAX).map(character).collect();
        assert_eq!(all.len(), 256);
    }
}
