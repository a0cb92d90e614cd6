//! The tokenizer of a checkpoint, and the fingerprint by which two peers know that they share one.

use std::panic::catch_unwind;

use serde_json::Value as Json;
use serde_json::{Map, json};
use sha2::{Digest, Sha256};
use speculation::TokenId;
use thiserror::Error;
pub use tokenizers::Tokenizer;

/// Why a tokenizer cannot be had.
#[derive(Debug, Error)]
pub enum TokenizerError {
    /// The bytes are no tokenizer.
    #[error("tokenizer.json is not a tokenizer: {0}")]
    Malformed(String),
    /// The checkpoint has none.
    #[error("the checkpoint has no tokenizer.json")]
    Missing,
    /// The checkpoint has a tokenizer of another kind alone.
    #[error(
        "the checkpoint has {0} and no tokenizer.json; in Python transformers writes one: \
         AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
    )]
    OtherKind(&'static str),
}

/// Reads the bytes of a `tokenizer.json`.
///
/// # Errors
/// If they cannot be understood.
pub fn from_bytes(json: &[u8]) -> Result<Tokenizer, TokenizerError> {
    // The library panics on some files, those cut short among them.
    match catch_unwind(|| Tokenizer::from_bytes(json)) {
        Ok(read) => read.map_err(|error| TokenizerError::Malformed(error.to_string())),
        Err(_) => Err(TokenizerError::Malformed(
            "the tokenizers library panicked on it".to_owned(),
        )),
    }
}

/// SHA-256 over the id, the length and the bytes of every token in the order of the ids.
///
/// Ids are little-endian u32, lengths little-endian u64. Only ids that have a token count, so an
/// embedding table padded to a round size changes nothing.
pub fn vocabulary_fingerprint(tokenizer: &Tokenizer) -> [u8; 32] {
    let mut tokens: Vec<(u32, String)> = tokenizer
        .get_vocab(true)
        .into_iter()
        .map(|(token, id)| (id, token))
        .collect();
    tokens.sort_unstable();
    let mut hash = Sha256::new();
    for (id, token) in tokens {
        hash.update(id.to_le_bytes());
        hash.update((token.len() as u64).to_le_bytes());
        hash.update(token);
    }
    hash.finalize().into()
}

/// The id after a tokenizer's last: ids may have gaps, so their number is not their bound.
pub(crate) fn token_bound(tokenizer: &Tokenizer) -> usize {
    let ids = tokenizer.get_vocab(true).into_values();
    ids.max().map_or(0, |id| id as usize + 1)
}

/// A special token.
#[derive(Clone, Debug)]
pub(crate) struct SpecialToken {
    pub(crate) id: TokenId,
    pub(crate) text: String,
}

/// Returns the post-processor that begins each text with `bos` and ends it with `eos`; null if there is neither.
pub(crate) fn around(bos: Option<&SpecialToken>, eos: Option<&SpecialToken>) -> Json {
    if bos.is_none() && eos.is_none() {
        return Json::Null;
    }
    let special = bos.iter().chain(&eos).map(|token| {
        let described = json!({"id": token.text, "ids": [token.id], "tokens": [token.text]});
        (token.text.clone(), described)
    });
    // A text alone, or the one or the other of a pair.
    let text = |sequence: &str, kind: u8| -> Vec<Json> {
        let special =
            |token: &SpecialToken| json!({"SpecialToken": {"id": token.text, "type_id": kind}});
        let sequence = json!({"Sequence": {"id": sequence, "type_id": kind}});
        let begin = bos.map(special).into_iter();
        begin.chain([sequence]).chain(eos.map(special)).collect()
    };
    let first = text("A", 0);
    let both = [first.clone(), text("B", 1)].concat();
    json!({
        "type": "TemplateProcessing",
        "single": first,
        "pair": both,
        "special_tokens": special.collect::<Map<String, Json>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer(vocabulary: &str) -> Tokenizer {
        let json = format!(
            r#"{{"version": "1.0", "added_tokens": [], "model":
                {{"type": "WordLevel", "unk_token": "a", "vocab": {vocabulary}}}}}"#
        );
        from_bytes(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_file_cut_short_within_its_decoder_is_refused() {
        let refused = from_bytes(br#"{"version": "1.0", "decoder": {"type": "Fu"#);
        let error = refused.expect_err("refused").to_string();
        assert!(error.contains("panicked"), "{error}");
    }

    #[test]
    fn the_fingerprint_is_of_the_tokens_and_their_ids() {
        let base = vocabulary_fingerprint(&tokenizer(r#"{"a": 0, "b": 1, "c": 2}"#));
        let same = vocabulary_fingerprint(&tokenizer(r#"{"c": 2, "a": 0, "b": 1}"#));
        assert_eq!(base, same);
        for other in [
            r#"{"a": 0, "b": 2, "c": 1}"#,
            r#"{"a": 0, "b": 1, "d": 2}"#,
            r#"{"a": 0, "b": 1}"#,
        ] {
            assert_ne!(vocabulary_fingerprint(&tokenizer(other)), base, "{other}");
        }
    }
}
