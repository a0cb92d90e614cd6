//! Compares the tokens of pieces with those of the whole text.

use super::*;
use crate::cuts;
use crate::tests::samples::{self, Random};

/// The tokenizer of the built-in models.
const BUILT_IN: &str = include_str!("../../../../models/default/tokenizer/tokenizer.json");

fn read(json: &str) -> (Tokenizer, PieceEncoder) {
    let tokenizer = Tokenizer::from_bytes(json).expect("a tokenizer");
    let encoder = PieceEncoder::of(&tokenizer).expect("an encoder");
    (tokenizer, encoder)
}

/// Returns the tokens that the tokenizers crate returns for the whole of `text`.
fn whole(tokenizer: &Tokenizer, text: &str, with_special: bool) -> Vec<u32> {
    let encoding = tokenizer.encode_fast(text, with_special).expect("text");
    encoding.get_ids().to_vec()
}

#[test]
fn pieces_have_the_tokens_of_the_whole_text() {
    let tokenizers = samples::splitting::tokenizers();
    let kinds = samples::kinds();
    let kinds = kinds
        .into_iter()
        .map(|kind| (kind.name.to_owned(), kind.json));
    let built_in = ("built in".to_owned(), BUILT_IN.to_owned());
    let splitting = tokenizers.into_iter().map(|(name, json, _)| (name, json));
    for (name, json) in splitting.chain(kinds).chain([built_in]) {
        let (tokenizer, mut encoder) = read(&json);
        let is_known = encoder.cuts.are_known();
        encoder.cuts = encoder.cuts.everywhere();
        let mut random = Random(7);
        let mut cuts = 0;
        for round in 0..400 {
            let text = random.prose();
            cuts += encoder.cuts.pieces(&text).count().saturating_sub(1);
            let with_special = round % 2 == 0;
            let tokens = encoder.encode(&tokenizer, &text, with_special, usize::MAX);
            assert_eq!(
                tokens.expect("text"),
                whole(&tokenizer, &text, with_special),
                "{name}: {text:?}"
            );
        }
        assert_eq!(is_known, cuts > 100, "{name}: {cuts} cuts");
    }
}

#[test]
fn a_text_too_long_is_encoded_no_further_than_is_wanted() {
    let (tokenizer, encoder) = read(BUILT_IN);
    let text = "Once upon a time. ".repeat(100_000);
    let all = whole(&tokenizer, &text[..1 << 16], false);
    let tokens = encoder.encode(&tokenizer, &text, false, 100).expect("text");
    assert!((101..200).contains(&tokens.len()), "{}", tokens.len());
    assert_eq!(tokens, all[..tokens.len()]);
    // A text of exactly that many tokens is returned whole.
    let text = &text[..18 * 100];
    let all = whole(&tokenizer, text, true);
    let tokens = encoder.encode(&tokenizer, text, true, all.len() - 1);
    assert_eq!(tokens.expect("text"), all);
}

#[test]
fn memory_is_said_for_the_longest_piece() {
    let (_, encoder) = read(BUILT_IN);
    let words = encoder.bytes(&"word ".repeat(1 << 20));
    let piece = cuts::PIECE_BYTES..=cuts::PIECE_BYTES + "word ".len() + 1;
    assert!(
        piece.contains(&((words / PIECE_FACTOR) as usize)),
        "{words}"
    );
    // A text without a place to cut is one piece.
    assert_eq!(encoder.bytes(&"x".repeat(1 << 20)), PIECE_FACTOR << 20);
}
