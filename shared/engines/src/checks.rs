//! That an answer is one to what was asked.

use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;

use crate::error::ScoringError;

/// Checks that there are `expected` of `what`.
pub(crate) fn count(what: &'static str, found: usize, expected: usize) -> Result<(), ScoringError> {
    if found == expected {
        return Ok(());
    }
    Err(ScoringError::Count {
        what,
        found,
        expected,
    })
}

/// Returns the row of the `top` most likely tokens `likely`, in the engine's order, and of `asked`: `row` of `sequence`.
pub(crate) fn row(
    (sequence, row): (usize, usize),
    vocab_size: usize,
    top: usize,
    likely: &[Likely],
    asked: &[Likely],
) -> Result<PartialRow, ScoringError> {
    let mass_error = PartialRow::SINGLE_PRECISION;
    PartialRow::new(vocab_size, top, likely, asked, mass_error).map_err(|source| {
        ScoringError::Row {
            sequence,
            row,
            source,
        }
    })
}

/// Checks that `entries` are those of the tokens `wanted`, in that order.
pub(crate) fn in_order(entries: &[Likely], wanted: &[TokenId]) -> Result<(), ScoringError> {
    count("tokens that were asked for", entries.len(), wanted.len())?;
    let same = entries
        .iter()
        .zip(wanted)
        .all(|(entry, &token)| entry.token == token);
    if same {
        Ok(())
    } else {
        Err(ScoringError::Answer(
            "has other tokens than those asked for",
        ))
    }
}
