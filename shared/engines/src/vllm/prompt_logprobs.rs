//! The most likely tokens of each token of a prompt, as both routes give them.

use std::collections::BTreeMap;

use serde::Deserialize;
use speculation::TokenId;
use speculation::logprobs::Likely;

use crate::checks;
use crate::error::ScoringError;
use crate::request::ScoredSequence;

/// More bytes than an entry takes: `"151935":{"logprob":-12.345678901234567,"rank":151936,"decoded_token":"…"}`.
const ENTRY_BYTES: u64 = 256;
/// More bytes than an answer takes beside its entries.
const ANSWER_BYTES: u64 = 64 << 10;
/// How a server refuses that was started with a limit, and what to do.
pub(super) const TOO_MANY: (&str, &str) = (
    "greater than max allowed",
    "as many most likely tokens as are needed: start it with --max-logprobs -1",
);
/// The token that stands after a sequence, so that there is a row after its last one.
const DUMMY: TokenId = 0;

/// One entry for each token of the prompt, the first null: what was said of the token before it was read.
pub(super) type PromptLogprobs = Vec<Option<BTreeMap<TokenId, PromptLogprob>>>;

/// What is said of a token.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct PromptLogprob {
    logprob: Option<f64>,
}

/// A row as it was said.
#[derive(Clone, Debug, Default)]
pub(super) struct PromptRow {
    /// The most likely tokens, the likeliest first.
    pub(super) likely: Vec<Likely>,
    /// The token that follows, where it is none of them.
    pub(super) beside: Vec<Likely>,
}

/// Returns a sequence as it is sent.
pub(super) fn prompt(sequence: &ScoredSequence<'_>) -> Vec<TokenId> {
    let mut tokens = sequence.tokens.to_vec();
    tokens.push(DUMMY);
    tokens
}

/// Returns the most bytes of an answer for `sequence`: with most likely tokens there is a row for each of its tokens.
pub(super) fn longest(sequence: &ScoredSequence<'_>, top: usize) -> u64 {
    let rows = if top > 0 {
        sequence.tokens.len() + 1
    } else {
        0
    };
    rows as u64 * (top as u64 + 1) * ENTRY_BYTES + ANSWER_BYTES
}

/// Returns the `top` most likely tokens of each row of `sequence`, and the tokens that follow.
pub(super) fn rows(
    sequence: &ScoredSequence<'_>,
    top: usize,
    said: Option<PromptLogprobs>,
) -> Result<Vec<PromptRow>, ScoringError> {
    let said = said.ok_or(ScoringError::Answer("holds no log probabilities"))?;
    let prompt = prompt(sequence);
    checks::count("rows", said.len(), prompt.len())?;
    if said.first().is_some_and(Option::is_some) {
        return Err(ScoringError::Answer("holds a row where null was expected"));
    }
    let wanted = said.into_iter().zip(prompt).skip(sequence.committed);
    wanted
        .map(|(row, follows)| {
            let row = row.ok_or(ScoringError::Answer("holds null instead of a row"))?;
            split(row, follows, top)
        })
        .collect()
}

/// Returns the most likely tokens of a row, and the one that follows if it is beside them.
fn split(
    row: BTreeMap<TokenId, PromptLogprob>,
    follows: TokenId,
    top: usize,
) -> Result<PromptRow, ScoringError> {
    let mut beside = Vec::new();
    let mut likely = Vec::with_capacity(row.len());
    let is_beside = row.len() == top + 1;
    if !is_beside {
        checks::count("most likely tokens", row.len(), top)?;
    }
    for (token, entry) in row {
        let missing = "holds null instead of a log probability";
        let logprob = entry.logprob.ok_or(ScoringError::Answer(missing))?;
        let found = Likely { token, logprob };
        if is_beside && token == follows {
            beside.push(found);
        } else {
            likely.push(found);
        }
    }
    if is_beside && beside.is_empty() {
        let what = "holds a token that is neither likely nor the one that follows";
        return Err(ScoringError::Answer(what));
    }
    // The route gives them by token, whatever their order in the body.
    likely.sort_by(|a, b| b.logprob.total_cmp(&a.logprob).then(a.token.cmp(&b.token)));
    Ok(PromptRow { likely, beside })
}
