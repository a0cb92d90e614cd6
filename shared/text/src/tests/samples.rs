//! Small tokenizers of every kind, and random text for them.

pub(crate) mod splitting;

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

/// Returns a `tokenizer.json` of `model`, whose vocabulary gets the special token, and of `parts`.
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

/// Returns the characters that stand for bytes in byte-level BPE, by byte.
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

/// Returns the tokens of `text`.
pub(crate) fn encode(json: &str, text: &str) -> Vec<u32> {
    let encoded = read(json).encode(text, false).expect("text");
    encoded.get_ids().to_vec()
}

/// Returns the text of all of `tokens` at once.
pub(crate) fn decode(json: &str, tokens: &[u32]) -> String {
    read(json).decode(tokens, true).expect("tokens")
}

/// Random numbers (a linear congruential generator), and text made of them.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number below `bound`.
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

    /// Strings that tokenizers split at, or merge over.
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
