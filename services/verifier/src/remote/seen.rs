//! Compares a row with the one that the engine gave earlier for the same tokens, to notice that another engine answers.

use speculation::TokenId;
use speculation::certificate::PartialRow;
use speculation::logprobs::Likely;

/// Most entries of a row that are kept.
const KEPT: usize = 32;

/// Largest total variation at which two rows still count as rows of one model. Rounding and other batches cause
/// hundredths of it.
const MOST_APART: f64 = 0.25;

/// The most likely tokens of a row, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct SeenRow {
    /// Number of tokens before it.
    before: usize,
    likely: Vec<Likely>,
    /// No other token has a larger log probability.
    ceiling: f64,
}

impl SeenRow {
    /// Keeps the row after `before` tokens.
    pub(super) fn of(before: usize, row: &PartialRow) -> Self {
        let known = row.known();
        Self {
            before,
            likely: known[..known.len().min(KEPT)].to_vec(),
            ceiling: known
                .get(KEPT - 1)
                .map_or(row.ceiling(), |last| last.logprob),
        }
    }

    /// Returns whether it is the row before the last of `committed` tokens.
    pub(super) fn is_last_of(&self, committed: usize) -> bool {
        self.before > 0 && self.before + 1 == committed
    }

    /// Returns whether `row`, at the same place, cannot be of the same model.
    pub(super) fn differs(&self, row: &PartialRow) -> bool {
        self.is_apart(row.known(), row.ceiling())
    }

    /// Returns whether `other`, a kept row at the same place, cannot be of the same model.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        self.is_apart(&other.likely, other.ceiling)
    }

    fn is_apart(&self, known: &[Likely], ceiling: f64) -> bool {
        let found = |token: TokenId| known.iter().find(|likely| likely.token == token);
        let (mut less, mut more) = (0.0, 0.0);
        for likely in &self.likely {
            let before = likely.logprob.exp();
            let now = found(likely.token).map(|found| found.logprob.exp());
            let change = now.unwrap_or_else(|| before.min(ceiling.exp())) - before;
            less += (-change).max(0.0);
            more += change.max(0.0);
        }
        // Each sum is a lower bound of the total variation, because probability that leaves some tokens goes to others.
        less.max(more) > MOST_APART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(logits: [f64; 4]) -> PartialRow {
        let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
        let logprobs = logits.map(|logit| logit - sum.ln());
        PartialRow::whole(&logprobs, 1e-6).expect("a row")
    }

    #[test]
    fn another_model_is_told_from_noise() {
        let seen = SeenRow::of(5, &row([2.0, 1.0, 0.0, -1.0]));
        assert!(seen.is_last_of(6) && !seen.is_last_of(5) && !seen.is_last_of(7));
        assert!(!seen.differs(&row([2.05, 0.9, 0.05, -1.1])));
        assert!(seen.differs(&row([0.0, 1.0, 2.0, -1.0])));
        let first = SeenRow::of(0, &row([2.0, 1.0, 0.0, -1.0]));
        assert!(!first.is_last_of(1), "no token stands before it");
    }
}
