//! Any bytes as a `tokenizer.json`: it is refused, or encodes any text and makes text of any tokens.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use speculation::session::Origin;
use text::{OutputText, ServedText};
use wire::v1::TokenizerPart;

/// Text of all kinds: the ends of characters and words are where tokenizers go wrong.
const TEXT: &str = "Once é한국🟟 \u{FFFD}\n\t  <end>'s 入";

/// More than the tokens of all tokenizers that fuzzing begins with.
const TOKENS: u32 = 300;

/// Panics of the library are contained, and must not end the fuzzer; others unwind to it and do.
fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let is_librarys = panic
            .location()
            .is_some_and(|at| at.file().contains("/tokenizers-"));
        if !is_librarys {
            eprintln!("{panic}");
        }
    }));
}

fuzz_target!(init: tell_of_panics(), |bytes: &[u8]| {
    let Ok(served) = ServedText::new(bytes, TokenizerPart::default()) else {
        return;
    };
    let served = Arc::new(served);
    let _ = served.tokens("", false, usize::MAX);
    let prompt = served.tokens(TEXT, true, usize::MAX).unwrap_or_default();
    let mut output = OutputText::new(Arc::clone(&served), vec!["ab".to_owned()], &prompt);
    let tokens = prompt.iter().copied().chain(0..TOKENS);
    let tokens: Vec<_> = tokens.map(|token| (token, Origin::Accepted)).collect();
    let emitted = output.emit(&tokens);
    assert_eq!(emitted.chunk.pieces.concat(), emitted.chunk.text);
    let _ = output.finish();
});
