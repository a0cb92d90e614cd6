//! Tokenizers that split text before their models run.

use serde_json::{Value, json};

use super::{byte_fallback, byte_level, metaspace, word_level, word_piece};

/// Expressions that the tokenizers of well-known models split text by: those of GPT-2, Llama 3, Qwen, GPT-4o and
/// DeepSeek V3.
pub(crate) const EXPRESSIONS: [&str; 5] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[!#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// Returns tokenizers that split text in every supported way, and some in others: the name of each, its
/// `tokenizer.json`, and whether there are places where it always splits.
#[expect(
    clippy::too_many_lines,
    reason = "a list of tokenizers, one after another"
)]
pub(crate) fn tokenizers() -> Vec<(String, String, bool)> {
    let words = [
        "the", " the", "he w", "ed", " 한국", "어 ", "。\n", "\n\n", "12", "  ", "a\n",
    ];
    let with = |json: &str, parts: Value| {
        let mut json: Value = serde_json::from_str(json).expect("JSON");
        if let (Value::Object(json), Value::Object(parts)) = (&mut json, parts) {
            json.extend(parts);
        }
        json.to_string()
    };
    let mut all = Vec::new();
    let mut add = |name: &str, is_sure, json| all.push((name.to_owned(), json, is_sure));
    let bytes = byte_level(&words);
    let level = |regex: bool, space: bool| json!({"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": true, "use_regex": regex});
    let sequence =
        |steps: Vec<Value>| json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}});
    let split = |expression: &str, behavior| json!({"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": false});
    let digits = || json!({"type": "Digits", "individual_digits": true});
    add("bytes alone", false, bytes.clone());
    add(
        "GPT-2",
        true,
        with(&bytes, json!({"pre_tokenizer": level(true, false)})),
    );
    add(
        "RoBERTa",
        true,
        with(&bytes, json!({"pre_tokenizer": level(true, true)})),
    );
    add(
        "digits, GPT-2",
        true,
        with(&bytes, sequence(vec![digits(), level(true, false)])),
    );
    for expression in EXPRESSIONS {
        let steps = vec![split(expression, "Isolated"), level(false, false)];
        let nfc = json!({"normalizer": {"type": "NFC"}});
        add(expression, true, with(&with(&bytes, sequence(steps)), nfc));
    }
    for (expression, behavior, is_sure) in [
        (EXPRESSIONS[1], "MergedWithPrevious", false),
        (r"\p{L}+[\s\p{P}]?", "Isolated", false),
        // Before a line's end it is sure.
        (r"\p{L}+ ?", "Isolated", true),
    ] {
        let steps = vec![split(expression, behavior), level(false, false)];
        let name = format!("{expression}, {behavior}");
        add(&name, is_sure, with(&bytes, sequence(steps)));
    }
    let numbers = split(r"\p{N}{1,3}", "Isolated");
    let chinese = split("[一-龥\u{3040}-ゟ゠-ヿ]+", "Isolated");
    let steps = vec![
        numbers,
        chinese,
        split(EXPRESSIONS[4], "Isolated"),
        level(false, false),
    ];
    add("DeepSeek", true, with(&bytes, sequence(steps)));
    let lower = json!({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]}});
    add(
        "lower case",
        true,
        with(
            &with(&bytes, json!({"pre_tokenizer": level(true, false)})),
            lower,
        ),
    );
    // Tokens that take the space after them, are words of their own, or hold a letter and a space.
    for (name, token, is_sure) in [
        (
            "a token of marks",
            json!({"content": "<x>", "single_word": true, "lstrip": true, "rstrip": true}),
            true,
        ),
        (
            "a token with a space",
            json!({"content": "e w", "single_word": false, "lstrip": false, "rstrip": false}),
            false,
        ),
        (
            "a token before a space",
            json!({"content": "ed", "single_word": false, "lstrip": false, "rstrip": true}),
            false,
        ),
        (
            "a token of a word",
            json!({"content": " the", "single_word": true, "lstrip": false, "rstrip": false}),
            false,
        ),
    ] {
        let mut token = token;
        token["id"] = 6000.into();
        token["normalized"] = false.into();
        token["special"] = true.into();
        let mut json: Value =
            serde_json::from_str(&with(&bytes, json!({"pre_tokenizer": level(true, false)})))
                .expect("JSON");
        json["added_tokens"]
            .as_array_mut()
            .expect("a list")
            .push(token);
        add(name, is_sure, json.to_string());
    }
    let pieces = "the 한국é🟟wd12<x>。\n";
    add(
        "Llama 2",
        true,
        merging(&byte_fallback(true, pieces), &["▁t", "▁th", "▁▁", "he"]),
    );
    add(
        "Gemma",
        true,
        merging(&byte_fallback(false, pieces), &["▁t", "▁th", "▁▁", "he"]),
    );
    add(
        "pieces over words",
        false,
        merging(&byte_fallback(false, pieces), &["e▁"]),
    );
    let space = json!({"pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}});
    add(
        "Gemma 2",
        true,
        with(
            &merging(&byte_fallback(false, pieces), &["▁t", "he"]),
            space,
        ),
    );
    for scheme in ["always", "first", "never"] {
        for split in [true, false] {
            let step = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split});
            let name = format!("Metaspace, {scheme}, {split}");
            add(
                &name,
                true,
                with(&metaspace(), json!({"pre_tokenizer": step})),
            );
        }
    }
    add("WordPiece", true, word_piece());
    add("word level", true, word_level());
    add(
        "Whitespace",
        true,
        with(
            &word_level(),
            json!({"pre_tokenizer": {"type": "Whitespace"}}),
        ),
    );
    add(
        "BERT",
        true,
        with(
            &word_piece(),
            json!({"pre_tokenizer": {"type": "BertPreTokenizer"}, "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}}),
        ),
    );
    all
}

/// Returns the tokenizer `json` with tokens that two others merge into.
fn merging(json: &str, merged: &[&str]) -> String {
    let mut json: Value = serde_json::from_str(json).expect("JSON");
    for (id, name) in (7000..).zip(merged) {
        let at = name.char_indices().next_back().expect("two characters").0;
        json["model"]["vocab"][*name] = id.into();
        let merge = json!([&name[..at], &name[at..]]);
        json["model"]["merges"]
            .as_array_mut()
            .expect("a list")
            .push(merge);
    }
    json.to_string()
}
