//! Any text as a grammar: it is refused in one line, or followed for a while; every token that may come fits, one that goes
//! back finds what was there before, and no panic of the library leaves it.

#![no_main]

use std::sync::LazyLock;

use grammar::Grammars;
use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::input::GrammarText;
use outrider_fuzz::memory::grown_by;
use outrider_fuzz::models::{END, TOKENIZER_JSON, VOCAB_SIZE};
use speculation::TokenId;
use speculation::constraint::Constraint;

/// Most output tokens.
const MOST: usize = 24;

/// Most bytes that a grammar may take while it is compiled and followed.
const MOST_MEMORY: u64 = 256 << 20;

static GRAMMARS: LazyLock<Grammars> =
    LazyLock::new(|| Grammars::of_json(|| TOKENIZER_JSON.into(), VOCAB_SIZE, vec![END]));

/// The libraries that grammars are compiled with contain their panics, which must not end the fuzzer; others unwind to it and
/// do.
fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let is_librarys = panic.location().is_some_and(|at| {
            let names = ["/llguidance-", "/derivre-", "/toktrie-"];
            names.iter().any(|name| at.file().contains(name))
        });
        if !is_librarys {
            eprintln!("{panic}");
        }
    }));
}

fuzz_target!(init: tell_of_panics(), |bytes: &[u8]| -> Corpus {
    let Some(GrammarText { spec, choices }) = GrammarText::read(bytes) else {
        return Corpus::Reject;
    };
    let ((), grown) = grown_by(|| match GRAMMARS.compile(&spec) {
        Ok(grammar) => follow(grammar.start(), choices),
        Err(error) => is_one_line(&error.to_string()),
    });
    assert!(grown <= MOST_MEMORY, "{grown} bytes");
    Corpus::Keep
});

fn is_one_line(reason: &str) {
    assert!(
        !reason.is_empty() && reason.lines().count() == 1,
        "{reason}"
    );
}

/// Draws tokens among those allowed until the output ends.
fn follow(mut state: Box<dyn Constraint>, choices: &[u8]) {
    for at in 0..MOST {
        let may = match state.allowed() {
            Ok(Some(words)) => tokens(&words),
            Ok(None) => return,
            Err(reason) => return is_one_line(&reason),
        };
        if may.is_empty() {
            return;
        }
        let forced = state.forced();
        assert_eq!(state.fitting(&forced), forced.len(), "{forced:?}");
        let choice = choices.get(at % choices.len().max(1)).copied();
        let token = may[usize::from(choice.unwrap_or(7)) % may.len()];
        assert_eq!(state.fitting(&[token]), 1, "{token}");
        state.push(token);
        match state.allowed() {
            Ok(next) => assert_eq!(next.is_none(), token == END),
            // A grammar may reach its limits there.
            Err(reason) => return is_one_line(&reason),
        }
        state.pop(1);
        let again = state.allowed().expect("as before").expect("as before");
        assert_eq!(tokens(&again), may);
        state.push(token);
    }
}

/// The tokens of a mask.
fn tokens(words: &[u32]) -> Vec<TokenId> {
    let is_set = |token: &TokenId| words[*token as usize / 32] >> (token % 32) & 1 == 1;
    (0..VOCAB_SIZE).filter(is_set).collect()
}
