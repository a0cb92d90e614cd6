//! That an answer is one to what was asked.

use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;

use crate::error::EngineError;

/// Which row is looked at: its sequence and its index within it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) sequence: usize,
    pub(crate) row: usize,
}

/// Checks that there are `expected` of `what`.
pub(crate) fn count(what: &'static str, found: usize, expected: usize) -> Result<(), EngineError> {
    if found == expected {
        return Ok(());
    }
    Err(EngineError::Count {
        what,
        found,
        expected,
    })
}

/// A row of the `top` most likely tokens `likely`, in the engine's order, and of `asked`.
pub(crate) fn row(
    place: Place,
    vocab_size: usize,
    top: usize,
    likely: &[Likely],
    asked: &[Likely],
) -> Result<PartialRow, EngineError> {
    let mass_error = PartialRow::SINGLE_PRECISION;
    PartialRow::new(vocab_size, top, likely, asked, mass_error).map_err(|source| EngineError::Row {
        sequence: place.sequence,
        row: place.row,
        source,
    })
}

/// Checks that `entries` are those of the tokens `wanted`, in that order.
pub(crate) fn in_order(entries: &[Likely], wanted: &[TokenId]) -> Result<(), EngineError> {
    count("tokens that were asked for", entries.len(), wanted.len())?;
    let same = entries
        .iter()
        .zip(wanted)
        .all(|(entry, &token)| entry.token == token);
    if same {
        Ok(())
    } else {
        Err(EngineError::Answer("has other tokens than those asked for"))
    }
}
