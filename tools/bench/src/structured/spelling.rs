//! A tokenizer of any size whose tokens spell any text.

use anyhow::ensure;
use serde_json::{Map, Value, json};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// What a blank is in a byte-level vocabulary.
const BLANK: &str = "Ġ";

/// Words of a prompt.
const WORDS: &[&str] = &[
    "garden", "river", "window", "market", "letter", "engine", "winter", "button", "castle",
    "ticket", "bridge", "pocket",
];

/// Words that say nothing, different for every `number` below the third power of how many there are.
pub(crate) fn prompt(number: usize) -> String {
    let word = |power: u32| WORDS[number / WORDS.len().pow(power) % WORDS.len()];
    [word(0), word(1), word(2)].join(" ")
}

/// A byte-level `tokenizer.json` of `vocab` tokens: all bytes, then runs of letters, the shortest first, with and without a
/// blank before them, and the end token.
///
/// # Errors
/// If so few tokens cannot spell any text.
pub(crate) fn tokenizer(vocab: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes: Vec<String> = ByteLevel::alphabet().iter().map(char::to_string).collect();
    ensure!(
        vocab > bytes.len(),
        "--vocab: {vocab} is out of range, expected more than {}",
        bytes.len()
    );
    bytes.sort_unstable();
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let mut tokens = bytes;
    let mut merges: Vec<[String; 2]> = Vec::new();
    let mut begun: Vec<String> = [&[BLANK.to_owned()], &letters[..]].concat();
    while tokens.len() + 1 < vocab {
        let longer = begun
            .iter()
            .flat_map(|begun| letters.iter().map(|letter| [begun.clone(), letter.clone()]));
        let longer: Vec<[String; 2]> = longer.take(vocab - 1 - tokens.len()).collect();
        begun = longer.iter().map(|parts| parts.concat()).collect();
        tokens.extend(begun.iter().cloned());
        merges.extend(longer);
    }
    let end = json!({
        "id": tokens.len(), "content": "<end>", "special": true,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
    });
    let ids: Map<String, Value> = tokens.into_iter().zip((0_u32..).map(Value::from)).collect();
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let json = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [end],
        "normalizer": null,
        "pre_tokenizer": level,
        "post_processor": null,
        "decoder": level,
        "model": {"type": "BPE", "vocab": ids, "merges": merges},
    });
    Ok(serde_json::to_vec(&json)?)
}

#[cfg(test)]
mod tests {
    use tokenizers::Tokenizer;

    use super::*;

    #[test]
    fn there_are_as_many_tokens_as_asked_for_and_they_spell_any_text() {
        for vocab in [300, 5_000] {
            let json = tokenizer(vocab).expect("JSON");
            let tokenizer = Tokenizer::from_bytes(json).expect("a tokenizer");
            assert_eq!(tokenizer.get_vocab_size(true), vocab);
            let text = "{\"a garden\": [1, \"für\"]}";
            let tokens = tokenizer.encode(text, false).expect("tokens");
            assert!(tokens.len() < text.len());
            let back = tokenizer.decode(tokens.get_ids(), false).expect("text");
            assert_eq!(back, text);
        }
        let error = tokenizer(256).expect_err("refused").to_string();
        assert!(error.starts_with("--vocab: 256"), "{error}");
    }
}
