//! Coupled verification: a draft token stands iff it is the verifier's own choice.

use super::{Block, LastToken, RoundLaws, Verdict};
use crate::TokenId;
use crate::coupled::choice;
use crate::noise::Noise;
use crate::real::Real;

/// Decides `block`. The emitted tokens are the verifier's choices at their positions, so they do
/// not depend on what was drafted. No law is asked for beyond the first refusal, and none of the
/// draft laws is looked at.
///
/// # Errors
/// Whatever `laws` fails with.
pub fn verify<F: Real, L: RoundLaws<F>>(
    block: &Block<'_>,
    noise: &Noise,
    laws: &mut L,
) -> Result<Verdict, L::Error> {
    let (drafts, ended) = block.until_end();
    let mut chosen = |offset: usize| -> Result<TokenId, L::Error> {
        let position = block.base_len + offset as u32;
        Ok(choice(laws.at(offset)?.target, noise, position))
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
