//! Coupled verification: a draft token stands iff it is the verifier's own choice.

use super::table::{AcceptanceLabel, Draws, Procedure, Verification};
use super::{DraftChain, LastToken, RoundDistributions, Verdict};
use crate::TokenId;
use crate::coupled::choice;
use crate::noise::Noise;
use crate::real::Real;

impl Verification {
    /// A draft token stands if it is the verifier's own choice under the noise that both share.
    pub const COUPLED: Self = Self {
        name: "coupled",
        summary: "a draft token is accepted if the verifier, with the same random numbers, chooses it too",
        wire: 1,
        draws: Draws::Shared,
        reads_draft: false,
        reads_unscaled: false,
        label: Some(AcceptanceLabel::Coupled),
        carries_layers: false,
        bonus_may_differ: false,
        is_choosable: true,
        procedure: Procedure::Coupled,
        rollback: 0.0,
    };
}

/// Decides `block`. The emitted tokens are the verifier's choices at their positions, so they do
/// not depend on what was drafted. It reads no distribution beyond the first refusal, and no
/// draft distribution at all.
///
/// # Errors
/// Whatever `distributions` fails with.
pub fn verify<F: Real, L: RoundDistributions<F>>(
    block: &DraftChain<'_>,
    noise: &Noise,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let (drafts, ended) = block.until_end();
    let mut chosen = |offset: usize| -> Result<TokenId, L::Error> {
        let position = block.base_len + offset as u32;
        Ok(choice(distributions.at(offset)?.target, noise, position))
    };
    for (offset, draft) in drafts.iter().enumerate() {
        let chosen = chosen(offset)?;
        if chosen != *draft {
            let accepted = &drafts[..offset];
            return Ok(Verdict::with_last(accepted, chosen, LastToken::Recovered));
        }
    }
    if ended {
        return Ok(Verdict::ended(drafts));
    }
    let bonus = chosen(drafts.len())?;
    Ok(Verdict::with_last(drafts, bonus, LastToken::Bonus))
}
