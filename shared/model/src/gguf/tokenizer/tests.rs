use serde_json::json;
use tokenizers::Tokenizer;

use super::*;
use crate::gguf::{
    tests::{array, flag, metadata, strings, text, whole, wholes},
    value::MetadataValue,
};

/// The same with another value of `key`.
fn with(mut metadata: GgufMetadata, key: &str, value: MetadataValue) -> GgufMetadata {
    metadata.0.insert(format!("tokenizer.ggml.{key}"), value);
    metadata
}

/// A byte-level tokenizer that cuts as `pre` says: digits, letters and a few pairs.
fn byte_level(pre: &str) -> GgufMetadata {
    let mut tokens: Vec<&str> = vec!["<s>", "</s>", "<user>"];
    tokens.extend(["0", "1", "2", "3", "a", "b", "c", "Ġ", "Ċ", "'"]);
    tokens.extend(["12", "123", "ab", "abc", "Ġa", "Ġab", "[PAD19]", "Ġ1"]);
    let kinds = [vec![3, 3, 4], vec![1; 16], vec![5, 1]].concat();
    metadata(&[
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text(pre)),
        ("tokenizer.ggml.tokens", strings(&tokens)),
        ("tokenizer.ggml.token_type", wholes(&kinds)),
        (
            "tokenizer.ggml.merges",
            strings(&["Ġ 1", "1 2", "12 3", "a b", "Ġ a", "Ġ ab"]),
        ),
        ("tokenizer.ggml.bos_token_id", whole(0)),
        ("tokenizer.ggml.eos_token_id", whole(1)),
    ])
}

fn tokenizer(metadata: &GgufMetadata) -> Tokenizer {
    crate::tokenizer::from_bytes(&read(metadata).unwrap().unwrap()).unwrap()
}

fn pieces(metadata: &GgufMetadata, text: &str) -> Vec<String> {
    let encoding = tokenizer(metadata).encode(text, true).unwrap();
    encoding.get_tokens().to_vec()
}

fn message(metadata: &GgufMetadata) -> String {
    read(metadata).unwrap_err().to_string()
}

#[test]
fn words_are_cut_as_the_name_says() {
    for (pre, text, expected) in [
        ("llama-bpe", "123 12", "<s> 123 Ġ 12"),
        ("qwen2", "123 12", "1 2 3 Ġ 1 2"),
        ("smollm", "123 12", "1 2 3 Ġ 1 2"),
        ("gpt-2", "123 12", "123 Ġ1 2"),
        ("default", "123 12", "123 Ġ 12"),
        ("stablelm2", "123 12", "1 2 3 Ġ 1 2"),
        ("gpt-4o", "123 12", "123 Ġ 12"),
        ("deepseek-v3", "123 12", "123 Ġ 12"),
        ("deepseek-coder", "123 12", "1 2 3 Ġ 1 2"),
        ("viking", "123 12", "1 2 3 Ġ 1 2"),
        // A word that is a token needs no merges, where the name says so.
        ("llama-bpe", "abc", "<s> abc"),
        ("smaug-bpe", "abc", "ab c"),
        ("glm4", "abc", "abc"),
    ] {
        assert_eq!(pieces(&byte_level(pre), text).join(" "), expected, "{pre}");
    }
}

#[test]
fn words_of_a_pattern_are_not_cut_again() {
    // Llama's words may begin with a punctuation mark, GPT-2's may not.
    let of = |pre: &str| {
        let metadata = byte_level(pre);
        let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap().unwrap();
        let mut tokens: Vec<&str> = tokens;
        tokens[19] = "'a";
        let tokens = strings(&tokens);
        let kinds = wholes(&[vec![3, 3, 4], vec![1; 18]].concat());
        let metadata = with(metadata, "tokens", tokens);
        let metadata = with(metadata, "token_type", kinds);
        pieces(&with(metadata, "merges", strings(&["' a", "a b"])), "'ab")
    };
    assert_eq!(of("smaug-bpe"), ["'a", "b"]);
    assert_eq!(of("gpt-2"), ["'", "ab"]);
}

#[test]
fn texts_begin_and_end_as_the_metadata_says() {
    let begins = with(byte_level("gpt-2"), "add_bos_token", flag(true));
    let metadata = with(begins, "add_eos_token", flag(true));
    assert_eq!(pieces(&metadata, "ab"), ["<s>", "ab", "</s>"]);
    let pair = tokenizer(&metadata).encode(("a", "b"), true).unwrap();
    assert_eq!(pair.get_tokens(), ["<s>", "a", "</s>", "<s>", "b", "</s>"]);
    let without = with(byte_level("llama-bpe"), "add_bos_token", flag(false));
    assert_eq!(pieces(&without, "ab"), ["ab"]);
}

#[test]
fn tokens_of_a_meaning_are_found_in_text() {
    let metadata = byte_level("gpt-2");
    let found = pieces(&metadata, "a</s>b<user>");
    assert_eq!(found, ["a", "</s>", "b", "<user>"]);
    let tokenizer = tokenizer(&metadata);
    let ids = tokenizer.encode("a</s>b<user>", false).unwrap();
    // The user's own token is text, control tokens are not.
    assert_eq!(tokenizer.decode(ids.get_ids(), true).unwrap(), "ab<user>");
    assert_eq!(tokenizer.token_to_id("[PAD19]"), None);
    assert_eq!(tokenizer.token_to_id("Ġ1"), Some(20));
}

/// A SentencePiece tokenizer: pieces with scores, and all bytes.
fn sentencepiece(prefix: Option<bool>) -> GgufMetadata {
    let pieces = ["▁", "a", "b", "c", "▁a", "ab", "bc", "▁ab", "abc", "x  x"];
    let scores = [
        -90.0, -91.0, -92.0, -93.0, -3.0, -2.0, -1.0, -4.0, -5.0, -6.0,
    ];
    let mut tokens = vec!["<unk>".to_owned(), "<s>".to_owned(), "</s>".to_owned()];
    let mut kinds = vec![2, 3, 3];
    tokens.extend((0..=255).map(|byte: u8| format!("<0x{byte:02X}>")));
    kinds.extend([6; 256]);
    tokens.extend(pieces.map(str::to_owned));
    kinds.extend([1; 9]);
    kinds.push(4);
    let scores: Vec<f64> = [vec![0.0; 259], scores.to_vec()].concat();
    let all = metadata(&[
        ("tokenizer.ggml.model", text("llama")),
        ("tokenizer.ggml.tokens", array(tokens)),
        ("tokenizer.ggml.token_type", wholes(&kinds)),
        ("tokenizer.ggml.scores", array(scores)),
        ("tokenizer.ggml.bos_token_id", whole(1)),
    ]);
    match prefix {
        Some(prefix) => with(all, "add_space_prefix", flag(prefix)),
        None => all,
    }
}

#[test]
fn pieces_with_better_scores_are_joined_first() {
    // bc before ab, though ab begins earlier: a bc, which abc then joins.
    let metadata = sentencepiece(Some(false));
    assert_eq!(pieces(&metadata, "abc"), ["<s>", "abc"]);
    assert_eq!(pieces(&metadata, "aab"), ["<s>", "a", "ab"]);
    let json: Json = serde_json::from_slice(&read(&sentencepiece(None)).unwrap().unwrap()).unwrap();
    let merges = ["b c", "a b", "▁ a", "▁a b", "▁ ab", "ab c", "a bc"];
    let merges = merges.map(|merge| merge.split(' ').collect::<Vec<_>>());
    assert_eq!(json["model"]["merges"], json!(merges));
}

#[test]
fn texts_begin_with_a_space_unless_told_not_to() {
    assert_eq!(pieces(&sentencepiece(None), "ab a"), ["<s>", "▁ab", "▁a"]);
    let bare = pieces(&sentencepiece(Some(false)), "ab a");
    assert_eq!(bare, ["<s>", "ab", "▁a"]);
    for prefix in [None, Some(false)] {
        let tokenizer = tokenizer(&sentencepiece(prefix));
        let ids = tokenizer.encode("ab  a", true).unwrap();
        assert_eq!(tokenizer.decode(ids.get_ids(), true).unwrap(), "ab  a");
    }
}

#[test]
fn what_no_piece_covers_is_bytes() {
    let metadata = sentencepiece(Some(false));
    assert_eq!(pieces(&metadata, "é"), ["<s>", "<0xC3>", "<0xA9>"]);
    let tokenizer = tokenizer(&metadata);
    let ids = tokenizer.encode("aé\n", true).unwrap();
    assert_eq!(tokenizer.decode(ids.get_ids(), true).unwrap(), "aé\n");
}

#[test]
fn tokens_of_users_may_hold_spaces() {
    for prefix in [Some(true), Some(false)] {
        let found = pieces(&sentencepiece(prefix), "ax  xb");
        let is_whole = found.iter().any(|piece| piece.starts_with('x'));
        assert!(is_whole, "{found:?}");
    }
    // It stands in the vocabulary as Hugging Face has it.
    let tokenizer = tokenizer(&sentencepiece(Some(false)));
    assert_eq!(tokenizer.token_to_id("x▁▁x"), Some(268));
}

#[test]
fn what_is_unknown_or_contradicts_itself_is_named() {
    for row in [
        r#"tiktoken | x |  | pre "tiktoken" is not supported: llama-bpe, llama3, "#,
        r#"gpt-2 | model | t5 | model "t5" is not supported: gpt2"#,
        "gpt-2 | token_type | 1 | it has 21 tokens and 1 token types",
        r#"gpt-2 | merges | ab | the merge "ab" has one part"#,
        "gpt-2 | merges | a q | its tokenizer makes no sense: ",
        r#"gpt-2 | tokens | a | the token "a" is there twice"#,
        "llama-bpe | bos_token_id | 90 | bos_token_id is 90, there are 21 tokens",
    ] {
        let [pre, key, value, reported] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let value = match key {
            "merges" => strings(&[value]),
            "tokens" => strings(&[value; 21]),
            "token_type" => wholes(&[value.parse().unwrap()]),
            "bos_token_id" => whole(value.parse().unwrap()),
            _ => text(value),
        };
        let found = message(&with(byte_level(pre), key, value));
        assert!(found.contains(reported), "{found}");
    }
    let mut metadata = byte_level("llama-bpe");
    metadata.0.remove("tokenizer.ggml.bos_token_id");
    let missing = message(&metadata);
    assert_eq!(missing, "its metadata has no tokenizer.ggml.bos_token_id");
    assert!(read(&GgufMetadata::default()).unwrap().is_none());
}

/// Every piece can be cut anywhere: n pieces make n² / 2 merges.
#[test]
fn pieces_that_make_too_many_merges_are_refused() {
    for lengths in [(1..2_200).collect(), vec![1, 20_000]] {
        let tokens: Vec<String> = lengths.into_iter().map(|n| "a".repeat(n)).collect();
        let scores = vec![0.0; tokens.len()];
        let mut metadata = sentencepiece(None);
        metadata.0.remove("tokenizer.ggml.token_type");
        let metadata = with(metadata, "tokens", array(tokens));
        let metadata = with(metadata, "scores", array(scores));
        assert!(message(&metadata).ends_with("its pieces make too many merges"));
    }
}
