//! What Max-Gram takes for each token it proposes, taking up as many new ones in the same time.

use std::time::{Duration, Instant};

use speculation::TokenId;
use speculation::max_gram::{Bigram, MaxGram};

use super::PartsArgs;
use super::row::PartRow;
use crate::timing::in_turn;
use outrider::progress;

/// Tokens before those that are measured.
const CONTEXTS: [usize; 2] = [512, 8192];

/// Microseconds that a token may take.
const GOAL_US: f64 = 2.0;

/// Tokens of the vocabulary.
const VOCAB: u32 = 4096;

/// Rounds of a measurement, and tokens that each takes up and proposes.
const ROUNDS: usize = 256;
const TOKENS: usize = 4;

/// Measures unlike texts in contexts of unlike length.
pub(super) fn rows(args: &PartsArgs) -> anyhow::Result<Vec<PartRow>> {
    let bigram = Bigram::new((0..VOCAB).map(|token| (token * 7 + 1) % VOCAB).collect())?;
    let mut rows = Vec::new();
    for (on, token) in [
        ("few tokens often", skewed as fn(usize) -> TokenId),
        ("a passage repeated", repeated),
    ] {
        let text: Vec<TokenId> = (0..CONTEXTS[1] + ROUNDS * TOKENS).map(token).collect();
        progress::show(&format!("max-gram: {on}"))?;
        let figures = in_turn(args.repeats, &CONTEXTS, |&context| {
            Ok(rounds(&text[..context + ROUNDS * TOKENS], context, &bigram))
        })?;
        rows.extend(CONTEXTS.iter().zip(&figures).map(|(&context, of)| {
            let us = of.us / (ROUNDS * TOKENS) as f64;
            PartRow::limited(on.to_owned(), context, "max-gram, a token", us, GOAL_US)
        }));
    }
    Ok(rows)
}

/// How long the rounds after the first `context` tokens of `text` take.
fn rounds(text: &[TokenId], context: usize, bigram: &Bigram) -> Duration {
    let mut index = MaxGram::new(&[]);
    for &token in &text[..context] {
        index.push(token);
    }
    let started = Instant::now();
    for tokens in text[context..].chunks(TOKENS) {
        for &token in tokens {
            index.push(token);
        }
        std::hint::black_box(index.propose(TOKENS, bigram));
    }
    started.elapsed()
}

/// Tokens without order, token v about as frequent as 1/v.
fn skewed(at: usize) -> TokenId {
    let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let uniform = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
    f64::from(VOCAB).powf(uniform) as TokenId % VOCAB
}

/// The same thousand tokens over and over.
fn repeated(at: usize) -> TokenId {
    skewed(at % 1000)
}
