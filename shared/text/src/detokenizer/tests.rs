//! Tokens of every kind of tokenizer, turned into text one by one.

use serde_json::json;

use super::*;
use crate::tests::samples::{self, Random};

/// Text of each of `tokens` after `prompt`, and what is left at the end.
fn stream(tokenizer_json: &str, prompt: &[u32], tokens: &[u32]) -> (Vec<String>, String) {
    let vocabulary = TokenText::from_json(tokenizer_json.as_bytes()).expect("a tokenizer");
    let mut detokenizer = Detokenizer::after(&vocabulary, prompt);
    let push = |&token: &u32| detokenizer.push(&vocabulary, token);
    let pieces = tokens.iter().map(push).collect();
    (pieces, detokenizer.finish(&vocabulary))
}

fn streamed(tokenizer_json: &str, tokens: &[u32]) -> String {
    let (pieces, rest) = stream(tokenizer_json, &[], tokens);
    pieces.concat() + &rest
}

fn pieces(text: &[u8]) -> (Vec<String>, String) {
    let tokens: Vec<u32> = text.iter().map(|&byte| byte.into()).collect();
    stream(&samples::byte_level(&[]), &[], &tokens)
}

#[test]
fn a_split_character_comes_with_the_token_that_completes_it() {
    let (pieces, rest) = pieces("aé€😀b".as_bytes());
    assert_eq!(pieces, ["a", "", "é", "", "", "€", "", "", "", "😀", "b"]);
    assert_eq!(rest, "");
}

#[test]
fn what_is_no_text_is_not_waited_for() {
    let (pieces, rest) = pieces(&[b'a', 0xFF, 0xFF, b'b', 0xE2, 0x82]);
    assert_eq!(pieces, ["a", "\u{FFFD}", "\u{FFFD}", "b", "", ""]);
    assert_eq!(rest, "\u{FFFD}");
}

/// U+FFFD in the text is a character as any other, and does not wait for the next.
#[test]
fn a_replacement_character_of_the_text_comes_at_once() {
    let (pieces, rest) = pieces("\u{FFFD}a".as_bytes());
    assert_eq!(pieces, ["", "", "\u{FFFD}", "a"]);
    assert_eq!(rest, "");
}

#[test]
fn an_incomplete_emoji_before_a_whole_one_takes_nothing_of_it() {
    let json = include_str!("../../../../models/default/tokenizer/tokenizer.json");
    // Bytes f0 9f 9f f0 9f 9f 9f.
    let (pieces, rest) = stream(json, &[], &[175, 256, 256, 175, 256, 256, 256]);
    assert_eq!(pieces, ["", "", "", "\u{FFFD}", "", "", "🟟"]);
    assert_eq!(rest, "");
}

#[test]
fn characters_outside_the_vocabulary_come_whole_under_byte_fallback() {
    let text = "한국어입니다";
    for prefix in [false, true] {
        let json = samples::byte_fallback(prefix, "한국");
        let (pieces, rest) = stream(&json, &[], &samples::encode(&json, text));
        assert_eq!(pieces.concat(), text);
        assert_eq!(rest, "");
        let whole = pieces.iter().filter(|piece| !piece.is_empty());
        assert_eq!(whole.count(), 6, "{pieces:?}");
    }
}

/// `Tokenizer::decode` makes twelve replacement characters of this run, because one byte of it is amiss.
#[test]
fn only_bytes_that_never_complete_are_replaced_under_byte_fallback() {
    let json = samples::byte_fallback(false, "a");
    let bytes = "어입".bytes().chain([0xEB]).chain("니".bytes());
    let tokens: Vec<u32> = bytes.map(|byte| samples::BYTES + u32::from(byte)).collect();
    assert_eq!(streamed(&json, &tokens), "어입\u{FFFD}니");
    // The beginning of a character, and then a token that is none.
    let a = samples::encode(&json, "a");
    assert_eq!(streamed(&json, &[&tokens[..2], &a].concat()), "\u{FFFD}a");
}

/// Tokens of words keep the space that the decoder drops of the first, whatever stands before them in the prompt.
#[test]
fn the_space_before_the_first_word_is_kept() {
    for json in [samples::metaspace(), samples::byte_fallback(true, "it▁was")] {
        let prompt = samples::encode(&json, "it was");
        let whole = samples::encode(&json, "it was it");
        let (begin, end) = whole.split_at(prompt.len());
        assert_eq!(begin, prompt);
        let (pieces, rest) = stream(&json, &prompt, end);
        assert_eq!(pieces.concat() + &rest, " it", "{json}");
        // Special tokens are not what a text begins with.
        let special = [&prompt[..], &[samples::SPECIAL; 2 * MAX_CONTEXT]].concat();
        let (pieces, rest) = stream(&json, &special, end);
        assert_eq!(pieces.concat() + &rest, " it", "{json}");
    }
}

#[test]
fn a_character_that_the_prompt_begins_is_completed() {
    let prompt = [0x20, 0xED, 0x95];
    let (pieces, _) = stream(&samples::byte_level(&[]), &prompt, &[0x9C, 0x21]);
    assert_eq!(pieces, ["한", "!"]);
}

/// A decoder that looks back over tokens: what stands is not given again, and nothing new is lost.
#[test]
fn text_that_changes_behind_is_lost_nowhere() {
    assert_eq!(suffix_after("a.😀", "a "), ".😀");
    assert_eq!(suffix_after("\u{FFFD}😀!", "\u{FFFD}\u{FFFD}"), "😀!");
    assert_eq!(suffix_after("a", "a b"), "");
}

#[test]
fn a_decoder_that_would_panic_is_refused() {
    let model = json!({"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}});
    let decoder = json!({"type": "Strip", "content": " ", "start": 0, "stop": 1});
    let json = samples::tokenizer(model, json!({"decoder": decoder}));
    let error = TokenText::from_json(json.as_bytes()).expect_err("refused");
    assert!(error.contains("strips the end"), "{error}");
}

/// For every kind of tokenizer: the tokens of random text give that text, one by one and after any beginning of it.
#[test]
fn the_tokens_of_any_text_give_that_text() {
    let mut random = Random(1);
    let kinds = samples::kinds();
    for round in 0..400 {
        for kind in &kinds {
            let text = (kind.text)(&mut random);
            let tokens = samples::encode(&kind.json, &text);
            let (pieces, rest) = stream(&kind.json, &[], &tokens);
            assert_eq!(pieces.concat(), text, "{} {round}: {tokens:?}", kind.name);
            assert_eq!(rest, "", "{}", kind.name);
            let at = random.below(tokens.len() + 1);
            let (after, rest) = stream(&kind.json, &tokens[..at], &tokens[at..]);
            assert_eq!(
                after,
                pieces[at..],
                "{} {round}: {tokens:?} at {at}",
                kind.name
            );
            assert_eq!(rest, "", "{}", kind.name);
        }
    }
}

/// What byte-level tokens say that are no text is what the tokenizers crate makes of all of them.
#[test]
fn byte_level_tokens_at_random_are_decoded_as_all_at_once() {
    let json = samples::byte_level(&["한", "é!", "🟟"]);
    let mut random = Random(2);
    for round in 0..400 {
        let bytes = random.list(24, |random| match random.below(3) {
            0 => b"\xF0\x9F\x9F\xED\x95\x9C\xE2\x82"[random.below(8)],
            _ => random.below(256) as u8,
        });
        let tokens: Vec<u32> = bytes.iter().map(|&byte| byte.into()).collect();
        let text = samples::decode(&json, &tokens);
        assert_eq!(streamed(&json, &tokens), text, "{round}: {bytes:x?}");
    }
}
