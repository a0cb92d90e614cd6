//! What makes a part of a row none.

use crate::TokenId;

/// A part of a row that says nothing about a distribution, or contradicts itself.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadRow {
    /// The engine gave another number of most likely tokens than it was asked for.
    #[error("row holds {found} most likely tokens, expected {expected}")]
    Count {
        /// Tokens found.
        found: usize,
        /// Tokens expected.
        expected: usize,
    },
    /// A token is outside of the vocabulary.
    #[error("row holds token {token}, outside of a vocabulary of {vocab_size}")]
    OutOfRange {
        /// The token.
        token: TokenId,
        /// Length of the whole row.
        vocab_size: usize,
    },
    /// A log probability is NaN, or above 0 by more than rounding.
    #[error("row holds {logprob} as the log probability of token {token}, expected at most 0")]
    NotALogprob {
        /// The token.
        token: TokenId,
        /// What stands there.
        logprob: f64,
    },
    /// The most likely tokens do not come in the order of their log probabilities.
    #[error("row holds token {0} after a less likely one")]
    Unsorted(TokenId),
    /// A token stands twice among the most likely ones, or twice among those asked for.
    #[error("row holds token {0} twice")]
    Duplicate(TokenId),
    /// A token has one log probability among the most likely ones and another among those asked for.
    #[error("row holds two log probabilities of token {0}")]
    Contradiction(TokenId),
    /// A token that was asked for is more likely than the least of the most likely ones, and is not among them.
    #[error("row leaves token {0} out of the most likely ones")]
    NotTheTop(TokenId),
    /// The probabilities known do not fit into a distribution.
    #[error("row has probabilities of {known} in all, and at most {most} where it is unknown")]
    Mass {
        /// Sum of the probabilities known.
        known: f64,
        /// Most that the others can have.
        most: f64,
    },
}
