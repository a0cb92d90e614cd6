//! Log probabilities of the tokens that a block emits, and of the prompt's.

use peer::RoundError;
use speculation::logprobs::{LogitsRow, TokenLogprobs};
use speculation::pipeline::DistributionError;
use speculation::verification::Verdict;

use super::{RowConsumer, ScoringInput};

/// Returns the log probabilities of each token that `verdict` emits, with the `top` most likely ones, from the `logits` of
/// its block (nodes + 1, `row_len`), of which `vocab_size` count.
pub(super) fn of_emitted(
    verdict: &Verdict,
    top: u32,
    (logits, row_len): (&[f32], usize),
    vocab_size: usize,
) -> Result<Vec<TokenLogprobs>, DistributionError> {
    // After the output, then after each accepted node.
    let after = std::iter::once(0).chain(verdict.path.iter().map(|&node| node as usize + 1));
    let mut order = Vec::new();
    let emitted = after.zip(&verdict.emitted).map(|(row, &token)| {
        let logits = &logits[row * row_len..][..vocab_size];
        of(logits, token, top, &mut order)
    });
    emitted.collect()
}

/// Returns the log probabilities of `token` and the `top` most likely ones, from `logits` (vocab). `order` is scratch.
pub(super) fn of(
    logits: &[f32],
    token: u32,
    top: u32,
    order: &mut Vec<u32>,
) -> Result<TokenLogprobs, DistributionError> {
    // Bans may have hidden a row without any support of its own.
    let row = LogitsRow::of(logits).ok_or(DistributionError::NoSupport)?;
    Ok(row.logprobs(token, top as usize, order))
}

/// Computes the log probabilities of the prompt tokens after those that are scored.
pub(super) struct PromptScores;

impl RowConsumer for PromptScores {
    type Output = Vec<TokenLogprobs>;

    fn evaluate(
        &mut self,
        input: &mut ScoringInput,
        (rows, row_len): (&mut [f32], usize),
    ) -> Result<Vec<TokenLogprobs>, RoundError> {
        let vocab_size = input.spec.vocab_size as usize;
        let top = input.spec.logprobs.unwrap_or(0);
        let mut order = Vec::new();
        let tokens = input.spec.lead()[input.scored_from + 1..].iter();
        let scored = rows.chunks_exact(row_len).zip(tokens);
        let scored =
            scored.map(|(logits, &token)| of(&logits[..vocab_size], token, top, &mut order));
        Ok(scored.collect::<Result<_, _>>()?)
    }
}
