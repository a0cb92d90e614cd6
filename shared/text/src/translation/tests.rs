use wire::v1::TokenizerPart;

use super::*;
use crate::tests::samples::{self, Random, SPECIAL};

/// More than the ids of all of these tokenizers.
const VOCAB: u32 = SPECIAL + 1;

fn served(json: &str) -> Arc<ServedText> {
    Arc::new(ServedText::new(json.as_bytes(), TokenizerPart::default()).expect("a tokenizer"))
}

fn pair(target: &str, draft: &str) -> Arc<Translator> {
    let (target, draft) = (served(target), served(draft));
    Arc::new(Translator::new((target, VOCAB), (draft, VOCAB)))
}

/// Of each pair of kinds, whatever the text and wherever what is told of it ends: the draft model reads that text, and its
/// tokens are the target's text again.
#[test]
fn a_text_goes_there_and_back() {
    let kinds = samples::kinds();
    let mut random = Random(7);
    for target in &kinds {
        for draft in &kinds {
            let pair = pair(&target.json, &draft.json);
            for _ in 0..40 {
                // Words that none of the kinds changes.
                let words = random.list(8, |random| ["it", "was", "한국어"][random.below(3)]);
                let text = match (target.name, draft.name) {
                    ("WordPiece" | "no decoder" | "Metaspace", _)
                    | (_, "WordPiece" | "no decoder" | "Metaspace") => words.join(" "),
                    _ => (target.text)(&mut random),
                };
                let tokens = samples::encode(&target.json, &text);
                let mut translated = TranslatedText::new(Arc::clone(&pair));
                for token in &tokens {
                    translated.follow(&[*token]);
                }
                let names = (target.name, draft.name);
                let read = samples::decode(&draft.json, translated.tokens());
                assert_eq!(read, pair.target.text.text_of(&tokens), "{names:?}");
                // And back, behind other text.
                let drafted = translated.tokens().iter();
                let mut drafted: Vec<u8> = drafted.flat_map(|&token| pair.drafted(token)).collect();
                // These write a word with its space.
                let has_none = drafted.first().is_some_and(|&byte| byte != b' ');
                if matches!(target.name, "WordPiece" | "no decoder") && has_none {
                    drafted.insert(0, b' ');
                }
                let back = pair.in_target(&drafted).into_iter();
                let back: Vec<u8> = back.flat_map(|token| pair.written(token)).collect();
                assert_eq!(drafted, back, "{names:?}: {text:?}");
            }
        }
    }
}

#[test]
fn tokens_that_are_written_alike_are_images() {
    let (target, draft) = (
        samples::byte_fallback(true, "the é"),
        samples::byte_level(&[" t", " the", "é"]),
    );
    let pair = pair(&target, &draft);
    let draft_token = |text: &str| samples::encode(&draft, text)[0];
    for text in ["t", " ", "é"] {
        let image = pair.image(draft_token(text)).expect("an image");
        // The piece, not the byte that it is, too.
        assert!(image < samples::BYTES, "{text}: {image}");
        assert_eq!(pair.written(image), text.as_bytes());
    }
    // Two characters of the target.
    assert_eq!(pair.image(draft_token(" the")), None);
    // A byte of a character has one, for bytes are tokens of both.
    assert_eq!(pair.image(0xE2), Some(samples::BYTES + 0xE2));
    assert_eq!(pair.image(SPECIAL), None);
    assert_eq!(pair.image(VOCAB), None);
    assert!(pair.shared() > 0.04 && pair.shared() < 0.06);
}

#[test]
fn special_tokens_are_mapped_by_name_or_left_out() {
    let draft = samples::byte_level(&[]);
    let renamed = draft.replace("<|special|>", "<|other|>");
    let follow = |target: &str| {
        let mut text = TranslatedText::new(pair(target, &draft));
        let ab = samples::encode(target, "ab");
        text.follow(&[&ab[..], &[SPECIAL], &ab].concat());
        text.tokens().to_vec()
    };
    let (a, b) = (u32::from(b'a'), u32::from(b'b'));
    assert_eq!(follow(&draft), [a, b, SPECIAL, a, b]);
    assert_eq!(follow(&renamed), [a, b, a, b]);
    let fallback = samples::byte_fallback(true, "ab");
    assert_eq!(follow(&fallback), [a, b, SPECIAL, b' '.into(), a, b]);
}

#[test]
fn an_incomplete_character_waits_for_its_rest() {
    let json = samples::byte_level(&[]);
    let pair = pair(&json, &json);
    assert_eq!(pair.in_target("é".as_bytes()).len(), 2);
    assert_eq!(pair.in_target(&"xé".as_bytes()[..2]), [u32::from(b'x')]);
    let mut text = TranslatedText::new(Arc::clone(&pair));
    text.follow(&[b'x'.into(), 0xC3]);
    assert_eq!(text.tokens(), [u32::from(b'x')]);
    text.follow(&[0xA9]);
    assert_eq!(text.tokens(), [u32::from(b'x'), 0xC3, 0xA9]);
    // What no byte completes is not waited for.
    text.follow(&[0xFF; 9]);
    text.follow(&[b'y'.into()]);
    assert_eq!(text.tokens().last(), Some(&u32::from(b'y')));
}

/// A text that can be cut nowhere is not tokenised anew from its beginning with each token.
#[test]
fn tokens_settle_in_any_text() {
    let json = samples::byte_level(&[]);
    let pair = pair(&json, &json);
    let mut random = Random(3);
    for alphabet in ["QUJD", "한국어", "a b", "\n\t{}"] {
        let mut text = TranslatedText::new(Arc::clone(&pair));
        let chars: Vec<char> = alphabet.chars().collect();
        let long: String = (0..4_000)
            .map(|_| chars[random.below(chars.len())])
            .collect();
        for token in samples::encode(&json, &long) {
            text.follow(&[token]);
            assert!(text.open_bytes() <= 300, "{alphabet}");
        }
        assert_eq!(samples::decode(&json, text.tokens()), long);
    }
}
