//! How a draft block is accepted.
//!
//! Coupled verification (the default) emits the target's own seeded sample, whatever was drafted;
//! token verification (rejection) is exact in distribution and accepts the most a single token can.

pub mod coupled;
pub mod token;

use crate::TokenId;

/// Which verification decides a draft block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verification {
    /// Accept a draft token iff it is the verifier's own choice under the shared noise.
    #[default]
    Coupled,
    /// Accept a draft token x with probability `min(1, π(x)/q(x))`, else resample the residual.
    Token,
}

/// What the last emitted token of a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastToken {
    /// It replaces the first draft token that was not accepted.
    Recovered,
    /// All draft tokens were accepted, and the target added one.
    Bonus,
    /// It is an accepted draft token that ends the output; nothing comes after it.
    AcceptedEnd,
}

/// The outcome of one round on a chain of draft tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The tokens emitted: the accepted draft tokens, then what [`Verdict::last`] says.
    pub emitted: Vec<TokenId>,
    /// Number of draft tokens accepted.
    pub accepted: usize,
    /// What the last emitted token is.
    pub last: LastToken,
}

impl Verdict {
    /// All of `accepted` draft tokens stand, the last of them ending the output.
    fn ended(accepted: &[TokenId]) -> Self {
        Self {
            emitted: accepted.to_vec(),
            accepted: accepted.len(),
            last: LastToken::AcceptedEnd,
        }
    }

    /// The draft tokens `accepted` stand, followed by the target's `token`.
    fn with_last(accepted: &[TokenId], token: TokenId, last: LastToken) -> Self {
        let mut emitted = Vec::with_capacity(accepted.len() + 1);
        emitted.extend_from_slice(accepted);
        emitted.push(token);
        Self {
            emitted,
            accepted: accepted.len(),
            last,
        }
    }
}
