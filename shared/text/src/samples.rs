//! Small tokenizers of every kind, and random text for them.

use serde_json::{Map, Value, json};
use tokenizers::Tokenizer;

/// The special token of each of these tokenizers.
pub(crate) const SPECIAL: u32 = 5000;

/// The first byte token of [`byte_fallback`].
pub(crate) const BYTES: u32 = 1000;

/// A kind of tokenizer, and random text that it can express.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) json: String,
    pub(crate) text: fn(&mut Random) -> String,
}

/// One of every kind.
pub(crate) fn kinds() -> Vec<Kind> {
    let kind = |name, json, text| Kind { name, json, text };
    let words = ["한", "é!", "🟟", " the", "入り", "ab\u{FFFD}"];
    let pieces = "the 한국é🟟";
    vec![
        kind("ByteLevel", byte_level(&words), Random::unicode),
        kind(
            "ByteFallback",
            byte_fallback(false, pieces),
            Random::unicode,
        ),
        kind(
            "SentencePiece",
            byte_fallback(true, pieces),
            Random::unicode,
        ),
        kind("Metaspace", metaspace(), Random::words),
        kind("WordPiece", word_piece(), Random::words),
        kind("no decoder", word_level(), Random::words),
    ]
}

/// Expressions that the tokenizers of well-known models split text by: those of GPT-2, Llama 3, Qwen, GPT-4o and
/// DeepSeek V3.
pub(crate) const EXPRESSIONS: [&str; 5] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[!#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// Tokenizers that split text in every way that is known, and whether it is sure where.
#[expect(
    clippy::too_many_lines,
    reason = "a list of tokenizers, one after another"
)]
pub(crate) fn splitting() -> Vec<(String, String, bool)> {
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

/// The tokenizer `json` with tokens that two others merge into.
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

/// A `tokenizer.json` of `model`, whose vocabulary gets the special token, and of `parts`.
pub(crate) fn tokenizer(mut model: Value, parts: Value) -> String {
    model["vocab"]["<|special|>"] = SPECIAL.into();
    let mut json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": model,
        "added_tokens": [{"id": SPECIAL, "content": "<|special|>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
    });
    if let (Value::Object(json), Value::Object(parts)) = (&mut json, parts) {
        json.extend(parts);
    }
    json.to_string()
}

/// Byte-level BPE. The first 256 tokens are the bytes by their value; the others are the beginnings of `words`, which
/// end inside characters too.
pub(crate) fn byte_level(words: &[&str]) -> String {
    let names = byte_names();
    let ids = (0..=255).map(Value::from);
    let mut vocab: Map<_, _> = names.iter().map(char::to_string).zip(ids).collect();
    let mut merges = Vec::new();
    for word in words {
        let mut left = String::new();
        for byte in word.bytes() {
            let name = names[usize::from(byte)];
            if !left.is_empty() {
                merges.push([left.clone(), name.to_string()]);
            }
            left.push(name);
            let id = vocab.len();
            vocab.entry(left.clone()).or_insert(id.into());
        }
    }
    merges.sort();
    merges.dedup();
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let model = json!({"type": "BPE", "byte_fallback": false, "vocab": vocab, "merges": merges});
    tokenizer(model, json!({"pre_tokenizer": bytes, "decoder": bytes}))
}

/// The characters that stand for bytes in byte-level BPE, by byte.
fn byte_names() -> Vec<char> {
    let mut unprintable = '\u{100}'..;
    let name = |byte: u8| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        _ => unprintable.next().expect("a character"),
    };
    (0..=255).map(name).collect()
}

/// SentencePiece with bytes for what no piece covers. With a space `before` the first word it is what Llama 2 has, and
/// what becomes of the tokenizer in a GGUF file; without, it is Gemma's. The characters of `pieces` are its pieces.
pub(crate) fn byte_fallback(before: bool, pieces: &str) -> String {
    let byte = |byte: u32| (format!("<0x{byte:02X}>"), Value::from(BYTES + byte));
    let mut vocab: Map<_, _> = (0..=255).map(byte).collect();
    for (id, piece) in pieces.replace(' ', "▁").chars().chain(['▁']).enumerate() {
        vocab.insert(piece.to_string(), id.into());
    }
    let mut normalizers =
        vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if before {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let model = json!({"type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": []});
    let normalizer = json!({"type": "Sequence", "normalizers": normalizers});
    let decoder = json!({"type": "Sequence", "decoders": decoders});
    tokenizer(model, json!({"normalizer": normalizer, "decoder": decoder}))
}

/// What [`Random::words`] is made of.
const WORDS: [&str; 6] = ["it", "was", "한국어", "😀", "naïve", "e\u{301}"];

/// Pieces that are characters and some more, a word's space being part of its first.
pub(crate) fn metaspace() -> String {
    let pieces = ["▁", "▁i", "▁한"].map(str::to_owned).into_iter();
    let letters = WORDS.iter().flat_map(|word| word.chars());
    let pieces = pieces.chain(letters.map(String::from));
    let mut vocab = Map::new();
    for piece in pieces {
        let id = vocab.len();
        vocab.entry(piece).or_insert(id.into());
    }
    let metaspace =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    let merges = [["▁", "i"], ["▁", "한"]];
    let model = json!({"type": "BPE", "byte_fallback": false, "vocab": vocab, "merges": merges});
    tokenizer(
        model,
        json!({"pre_tokenizer": metaspace, "decoder": metaspace}),
    )
}

/// Words, and pieces that go on in one.
fn word_piece() -> String {
    let vocab = json!({"[UNK]": 0, "it": 1, "w": 2, "##as": 3, "한": 4, "##국": 5, "##어": 6, "😀": 7, "na": 8,
        "##ï": 9, "##ve": 10, "e": 11, "##\u{301}": 12});
    let model = json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": vocab});
    let decoder = json!({"type": "WordPiece", "prefix": "##", "cleanup": false});
    tokenizer(
        model,
        json!({"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": decoder}),
    )
}

/// Words, and no decoder.
fn word_level() -> String {
    let ids = (0_u32..).map(Value::from);
    let vocab: Map<_, _> = WORDS.map(str::to_owned).into_iter().zip(ids).collect();
    let model = json!({"type": "WordLevel", "unk_token": "it", "vocab": vocab});
    tokenizer(model, json!({"pre_tokenizer": {"type": "WhitespaceSplit"}}))
}

fn read(json: &str) -> Tokenizer {
    Tokenizer::from_bytes(json).expect("a tokenizer")
}

/// The tokens of `text`.
pub(crate) fn encode(json: &str, text: &str) -> Vec<u32> {
    let encoded = read(json).encode(text, false).expect("text");
    encoded.get_ids().to_vec()
}

/// The text of all of `tokens` at once.
pub(crate) fn decode(json: &str, tokens: &[u32]) -> String {
    read(json).decode(tokens, true).expect("tokens")
}

/// Random numbers (a linear congruential generator), and text made of them.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// At most `most` of what `item` makes.
    pub(crate) fn list<T>(&mut self, most: usize, item: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| item(self)).collect()
    }

    /// Any characters but U+2581, which stands for a space in SentencePiece.
    fn unicode(&mut self) -> String {
        const COMMON: &str = "the é!한국어입니다入り🟟😀\u{FFFD}\u{200D}\u{301}\n";
        let character = |random: &mut Self| match random.below(3) {
            0 => char::from_u32(random.below(0x11_0000) as u32).filter(|&c| c != '▁'),
            _ => COMMON.chars().nth(random.below(COMMON.chars().count())),
        };
        self.list(16, character).into_iter().flatten().collect()
    }

    /// Pieces that tokenizers split at or look over.
    pub(crate) fn prose(&mut self) -> String {
        const PIECES: [&str; 24] = [
            "the",
            "he",
            "w",
            "ed",
            "wed",
            "The",
            "한국어",
            "é",
            "e\u{301}",
            "입니다",
            "ü",
            "다",
            " ",
            " ",
            " ",
            "  ",
            "\n",
            "。\n",
            "、",
            "'s",
            "12 345",
            "<x>",
            "<|special|>",
            "\u{A0}\t",
        ];
        self.list(40, |random| PIECES[random.below(PIECES.len())])
            .concat()
    }

    /// Words with a space between any two.
    fn words(&mut self) -> String {
        self.list(8, |random| WORDS[random.below(WORDS.len())])
            .join(" ")
    }
}
