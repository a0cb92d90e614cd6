//! Token verification: rejection sampling, one token after the other.
//!
//! Leviathan et al. and Chen et al. (2023); `GenSpecSample` of Narasimhan et al., "Faster Cascades
//! via Speculative Decoding", Algorithm 4, for any target distribution π: accept x drawn from q
//! with probability `min(1, π(x)/q(x))`, else draw from `norm((π - q)_+)`; all accepted, draw the
//! bonus from π.

use super::residual::residual;
use super::table::{AcceptanceLabel, Draws, Procedure, Verification};
use super::{DraftChain, LastToken, RoundDistributions, Verdict};
use crate::chance::Chance;
use crate::noise::Purpose;
use crate::real::Real;

impl Verification {
    /// Each draft token x stands with probability min(1, π(x)/q(x)), else the residual is drawn.
    pub const TOKEN: Self = Self {
        name: "token",
        summary: "a draft token x is accepted with probability min(1, π(x)/q(x)); a refused one is redrawn from the residual",
        wire: 2,
        draws: Draws::Own,
        reads_draft: true,
        label: Some(AcceptanceLabel::Rejection),
        bonus_may_differ: true,
        procedure: Procedure::Token,
        ..Self::COUPLED
    };
}

/// `π(x)/q(x)`, the probability with which x is accepted where it is below 1.
pub fn acceptance_ratio<F: Real>(target: F, draft: F) -> F {
    target / draft
}

/// Decides `block`: each draft token on its own, up to the first refusal, beyond which no distribution is
/// asked for.
///
/// # Errors
/// Whatever `distributions` fails with, and [`BadProposal`](crate::proposal::BadProposal) where a draft
/// distribution is missing or gives its own token no mass.
pub fn verify<F: Real, L: RoundDistributions<F>>(
    block: &DraftChain<'_>,
    chance: &mut impl Chance<F>,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let (drafts, ended) = block.until_end();
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        let drawn_with = position.drawn_with(draft)?;
        let ratio = acceptance_ratio(position.target[draft as usize], drawn_with);
        if !chance.accepts(offset as u32, ratio) {
            residual(0.0, position.target, position.draft);
            let recovered = chance.token(Purpose::Residual, offset as u32, position.draft);
            let accepted = &drafts[..offset];
            return Ok(Verdict::with_last(
                accepted,
                recovered,
                LastToken::Recovered,
            ));
        }
    }
    if ended {
        return Ok(Verdict::ended(drafts));
    }
    let offset = drafts.len();
    let bonus = chance.token(
        Purpose::Bonus,
        offset as u32,
        distributions.at(offset)?.target,
    );
    Ok(Verdict::with_last(drafts, bonus, LastToken::Bonus))
}
