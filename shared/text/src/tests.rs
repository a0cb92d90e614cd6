//! Small tokenizers to try things on, and tests of the whole crate.

pub(crate) mod samples;

use std::sync::Arc;

use super::*;

#[test]
fn tokens_stand_for_text_alone_and_together() {
    let json = samples::byte_fallback(true, "한국");
    let text = "한국어 ab";
    let tokens = samples::encode(&json, text);
    let served = ServedText::new(json.as_bytes(), TokenizerPart::default()).expect("a tokenizer");
    assert_eq!(served.text_of(&tokens), text);
    let bytes: Vec<u8> = tokens
        .iter()
        .flat_map(|&token| served.token_bytes(token))
        .collect();
    // A text begins with a space that its first token has.
    let spelled = String::from_utf8(bytes).expect("whole characters");
    assert_eq!(spelled.trim_start(), text);
    assert!(served.token_bytes(u32::MAX).is_empty());
    assert_eq!(
        served.text_within(&tokens, text.len()),
        Some(text.to_owned())
    );
    assert_eq!(served.text_within(&tokens, text.len() - 1), None);
}

/// Wherever the tokens of a text are divided, what stands before and the output after it are its text.
#[test]
fn text_before_an_output_and_the_output_are_the_text_of_all_tokens() {
    use speculation::session::Origin;

    for (kind, json) in [
        ("bytes", samples::byte_level(&["한", "é!"])),
        ("fallback", samples::byte_fallback(false, "한국")),
    ] {
        let text = "é한국어! 🟟";
        let mut tokens = samples::encode(&json, text);
        // A character that nothing completes.
        tokens.extend(samples::encode(&json, "어").first());
        let served =
            ServedText::new(json.as_bytes(), TokenizerPart::default()).expect("a tokenizer");
        let served = Arc::new(served);
        for at in 0..=tokens.len() {
            let (prompt, rest) = tokens.split_at(at);
            let rest: Vec<_> = rest.iter().map(|&id| (id, Origin::Target)).collect();
            let mut output = OutputText::new(Arc::clone(&served), Vec::new(), prompt);
            let emitted = output.emit(&rest).chunk.text + &output.finish().text;
            let all = served.text_before(prompt) + &emitted;
            assert_eq!(all, format!("{text}\u{FFFD}"), "{kind}, {at}");
        }
    }
}
