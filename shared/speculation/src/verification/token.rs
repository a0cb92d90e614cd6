//! Token verification: rejection sampling, one token after the other.
//!
//! Leviathan et al. and Chen et al. (2023); `GenSpecSample` of Narasimhan et al., "Faster Cascades
//! via Speculative Decoding", Algorithm 4, for any target distribution π: accept x drawn from q
//! with probability `min(1, π(x)/q(x))`, else draw from `norm((π - q)_+)`; all accepted, draw the
//! bonus from π.

use super::{LastToken, Verdict};
use crate::TokenId;
use crate::chance::Chance;
use crate::noise::Purpose;
use crate::proposal::BadProposal;
use crate::real::{Real, sum};

/// `π(x)/q(x)`, the probability with which x is accepted where it is below 1.
pub fn acceptance_ratio<F: Real>(target: F, draft: F) -> F {
    target / draft
}

/// Writes the unnormalised residual `(π - q)_+` (vocab) over `draft`, which holds q. Where rounding
/// leaves no mass (π = q), writes π.
pub fn residual<F: Real>(target: &[F], draft: &mut [F]) {
    for (mass, &pi) in draft.iter_mut().zip(target) {
        *mass = (pi - *mass).max(F::zero());
    }
    if sum(draft) <= F::zero() {
        draft.copy_from_slice(target);
    }
}

/// The expected number of accepted tokens of one position: `Σ_x min(q(x), π(x))`.
pub fn acceptance<F: Real>(draft: &[F], target: &[F]) -> F {
    draft
        .iter()
        .zip(target)
        .fold(F::zero(), |mass, (&q, &pi)| mass + q.min(pi))
}

/// Verifies the chain `drafts`.
///
/// `draft_law(i, scratch)` writes the law (vocab) that `drafts[i]` was drawn from; `laws(i)` gives
/// the target law after `drafts[..i]`, for i up to `drafts.len()`. Both are asked for in order, and
/// no further than the first refusal.
///
/// # Errors
/// Whatever `laws` or `draft_law` fails with: a draft law that gives its own token no mass is the
/// drafter's fault and never reaches a result.
pub fn verify<'l, F: Real, E: From<BadProposal>>(
    drafts: &[TokenId],
    ends: &[TokenId],
    chance: &mut impl Chance<F>,
    mut draft_law: impl FnMut(usize, &mut Vec<F>) -> Result<(), E>,
    mut laws: impl FnMut(usize) -> Result<&'l [F], E>,
) -> Result<Verdict, E> {
    let mut scratch = Vec::new();
    for (offset, &draft) in drafts.iter().enumerate() {
        draft_law(offset, &mut scratch)?;
        let target = laws(offset)?;
        let drawn_with = scratch[draft as usize];
        if drawn_with <= F::zero() {
            return Err(BadProposal::TokenWithoutMass(draft).into());
        }
        let ratio = acceptance_ratio(target[draft as usize], drawn_with);
        if !chance.accepts(offset as u32, ratio) {
            residual(target, &mut scratch);
            let recovered = chance.token(Purpose::Residual, offset as u32, &scratch);
            return Ok(Verdict::with_last(
                &drafts[..offset],
                recovered,
                LastToken::Recovered,
            ));
        }
        if ends.contains(&draft) {
            return Ok(Verdict::ended(&drafts[..=offset]));
        }
    }
    let offset = drafts.len();
    let bonus = chance.token(Purpose::Bonus, offset as u32, laws(offset)?);
    Ok(Verdict::with_last(drafts, bonus, LastToken::Bonus))
}
