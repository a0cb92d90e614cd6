//! Pieces against the whole text.

use super::*;
use crate::samples::{self, Random};

/// The tokenizer of the built-in models.
const BUILT_IN: &str = include_str!("../../../../models/default/tokenizer/tokenizer.json");

fn read(json: &str) -> (Tokenizer, Encoder) {
    let tokenizer = Tokenizer::from_bytes(json).expect("a tokenizer");
    let encoder = Encoder::of(&tokenizer).expect("an encoder");
    (tokenizer, encoder)
}

/// What the tokenizers crate makes of all of `text` at once.
fn whole(tokenizer: &Tokenizer, text: &str, with_special: bool) -> Vec<u32> {
    let encoding = tokenizer.encode_fast(text, with_special).expect("text");
    encoding.get_ids().to_vec()
}

#[test]
fn pieces_have_the_tokens_of_the_whole_text() {
    let tokenizers = samples::splitting();
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
    // A text of as many is whole.
    let text = &text[..18 * 100];
    let all = whole(&tokenizer, text, true);
    let tokens = encoder.encode(&tokenizer, text, true, all.len() - 1);
    assert_eq!(tokens.expect("text"), all);
}

#[test]
fn a_text_without_a_place_to_cut_takes_memory_for_all_of_it() {
    let (_, encoder) = read(BUILT_IN);
    let words = encoder.bytes(&"word ".repeat(1 << 20));
    assert!(words < 4 << 20, "{words}");
    let word = encoder.bytes(&"x".repeat(1 << 20));
    assert!(word >= 100 << 20, "{word}");
}
