//! Measures the memory that tokenising takes, for many kinds of text.
//!
//! A test binary of its own, because it replaces the global allocator by one that counts.

use std::time::Instant;

use peak_alloc::PeakAlloc;
use text::ServedText;
use tokenizers::Tokenizer;
use wire::v1::TokenizerPart;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The tokenizer of the built-in models: bytes, split as GPT-2 splits text.
const BYTES: &str = include_str!("../../../models/default/tokenizer/tokenizer.json");

/// A SentencePiece tokenizer with byte fallback, which does not split text.
const PIECES: &str = r#"{"version": "1.0", "added_tokens": [], "pre_tokenizer": null, "post_processor": null,
    "truncation": null, "padding": null, "decoder": null,
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "?", "merges": [],
        "vocab": {"?": 0, "▁": 1, "a": 2, "b": 3, "<0xE4>": 4, "<0xB8>": 5, "<0x80>": 6}}}"#;

const MIB: usize = 1 << 20;

/// Most bytes that `work` holds at a time, and what it returns.
fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let done = work();
    (ALLOCATOR.peak_usage() - before, done)
}

#[test]
fn tokenising_takes_no_more_memory_than_it_says() {
    // Prose; a word without end, numbers, marks, spaces, characters of all lengths, special tokens, random letters.
    let letters = |i: usize| char::from(b'a' + (i * 7919 % 1_000_003 % 26) as u8);
    let texts: [(&str, String); 10] = [
        (
            "prose",
            "Once upon a time there was a dog. ".repeat(MIB / 34),
        ),
        ("a word", "x".repeat(MIB)),
        ("letters", (0..MIB).map(letters).collect()),
        ("numbers", "7".repeat(MIB)),
        ("letters and numbers", "a1".repeat(MIB / 2)),
        ("marks", "!?.".repeat(MIB / 3)),
        ("spaces", " ".repeat(MIB)),
        ("Chinese", "一".repeat(MIB / 3)),
        ("emoji", "😀!".repeat(MIB / 5)),
        ("special tokens", "<s>".repeat(MIB / 3)),
    ];
    for (name, json) in [("bytes", BYTES), ("pieces", PIECES)] {
        let served = ServedText::new(json.as_bytes(), TokenizerPart::default());
        let served = served.expect("a tokenizer");
        let whole = Tokenizer::from_bytes(json).expect("a tokenizer");
        for (kind, text) in &texts {
            let bytes = served.encoding_bytes(text);
            let began = Instant::now();
            let (held, tokens) = most(|| served.tokens(text, false, usize::MAX));
            let took = began.elapsed();
            let tokens = tokens.expect("tokens");
            let began = Instant::now();
            let (at_once, all) = most(|| whole.encode_fast(text.as_str(), false));
            let whole_took = began.elapsed();
            assert_eq!(tokens, all.expect("tokens").get_ids(), "{name}, {kind}");
            println!(
                "{name}, {kind}: {} of {} bytes a byte, and at once {}; {took:?}, at once {whole_took:?}",
                held / text.len(),
                bytes as usize / text.len(),
                at_once / text.len()
            );
            // Tokens are said to come on top; a list that grows has twice of them.
            let most = bytes + 12 * tokens.len() as u64 + MIB as u64;
            assert!(
                held as u64 <= most,
                "{name}, {kind}: {held} bytes, {most} said"
            );
        }
        let (held, tokens) = most(|| served.tokens(&texts[0].1, false, 1000));
        assert!(tokens.expect("tokens").len() > 1000);
        assert!(
            held < 8 * MIB,
            "{name}: {held} bytes for the beginning of a text"
        );
    }
}
