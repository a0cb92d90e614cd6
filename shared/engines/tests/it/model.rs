//! A model of a few tokens, as the engines of the tests serve it.

use speculation::TokenId;
use speculation::philox::philox;

/// Length of a row.
pub(crate) const VOCAB: usize = 48;

/// Longest sequence.
pub(crate) const CONTEXT: usize = 64;

pub(crate) const MODEL: engines::engine::ModelSizes = engines::engine::ModelSizes {
    vocab_size: VOCAB,
    context_len: CONTEXT,
};

/// Log probabilities after `prefix` at a temperature, in single precision.
pub(crate) fn row(prefix: &[TokenId], temperature: f64) -> Vec<f64> {
    let hash = prefix.iter().fold(17, |hash: u32, &token| {
        philox([hash, token, 0, 0], [1, 2])[0]
    });
    let logits: Vec<f64> = (0..VOCAB as u32)
        .map(|token| {
            let words = philox([hash, token, 1, 0], [1, 2]);
            let uniform = (f64::from(words[0]) + 0.5) / 4_294_967_296.0;
            (uniform / (1.0 - uniform)).ln() * 1.5 / temperature
        })
        .collect();
    let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
    let single = |logit: &f64| f64::from((logit - sum.ln()) as f32);
    logits.iter().map(single).collect()
}

/// The `top` most likely tokens of a row, the likeliest first.
pub(crate) fn likeliest(row: &[f64], top: usize) -> Vec<TokenId> {
    let mut tokens: Vec<TokenId> = (0..VOCAB as TokenId).collect();
    tokens.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
    tokens.truncate(top);
    tokens
}
