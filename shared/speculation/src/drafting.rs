//! How one draft token is drawn.

use crate::TokenId;
use crate::chance::Chance;
use crate::coupled::choice;
use crate::noise::{Noise, Purpose};
use crate::proposal::{Proposal, ProposalForm};
use crate::real::Real;
use crate::verification::Verification;

/// A draft token and what the verifier is told of its law.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftToken {
    /// The token.
    pub id: TokenId,
    /// Its law, as sent.
    pub proposal: Proposal,
}

/// Draws the draft token at `offset` after `base_len` output tokens from the draft law `law`
/// (vocab), which is left as the law the token was really drawn from.
///
/// For coupled verification the token is the drafter's choice under the shared noise; for token
/// verification it is drawn from the law cut to `form`.
pub fn draft_token<F: Real>(
    law: &mut [F],
    verification: Verification,
    form: ProposalForm,
    noise: &Noise,
    (base_len, offset): (u32, u32),
    chance: &mut impl Chance<F>,
) -> DraftToken {
    let proposal = Proposal::of(law, form);
    let id = match verification {
        Verification::Coupled => choice(law, noise, base_len + offset),
        Verification::Token => chance.token(Purpose::Draft, offset, law),
    };
    DraftToken { id, proposal }
}
