//! Coupled verification: a draft token stands iff it is the verifier's own choice.

use super::{LastToken, Verdict};
use crate::TokenId;
use crate::coupled::choice;
use crate::noise::Noise;
use crate::real::Real;

/// Verifies the chain `drafts` after `base_len` output tokens.
///
/// `laws(i)` gives the target law at output position `base_len + i`, for i up to `drafts.len()`;
/// it is asked for in order, and no further than the first refusal. The emitted tokens are the
/// verifier's choices at their positions, so they do not depend on what was drafted.
///
/// # Errors
/// Whatever `laws` fails with.
pub fn verify<'l, F: Real, E>(
    drafts: &[TokenId],
    base_len: u32,
    noise: &Noise,
    ends: &[TokenId],
    mut laws: impl FnMut(usize) -> Result<&'l [F], E>,
) -> Result<Verdict, E> {
    for (offset, draft) in drafts.iter().enumerate() {
        let chosen = choice(laws(offset)?, noise, base_len + offset as u32);
        if chosen != *draft {
            return Ok(Verdict::with_last(
                &drafts[..offset],
                chosen,
                LastToken::Recovered,
            ));
        }
        if ends.contains(draft) {
            return Ok(Verdict::ended(&drafts[..=offset]));
        }
    }
    let bonus = choice(laws(drafts.len())?, noise, base_len + drafts.len() as u32);
    Ok(Verdict::with_last(drafts, bonus, LastToken::Bonus))
}
