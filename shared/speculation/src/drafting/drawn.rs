//! Siblings of a draft token that are drawn, for verifications that test a token against the distribution it was
//! drawn from.

use super::TreeShape;
use crate::TokenId;
use crate::chance::Chance;
use crate::noise::Purpose;
use crate::proposal::ProposalForm;
use crate::real::Real;
use crate::verification::Verification;

/// More than the widest shape has, so that no two draws of a block share a number.
const MOST_SIBLINGS: u32 = 64;

/// Whether the siblings of a tree are [`drawn_siblings`]: those that a verification tests against their distribution,
/// as far as `form` sends one.
pub fn draws_siblings(verification: Verification, form: ProposalForm) -> bool {
    let is_sent = matches!(
        form,
        ProposalForm::Sparse { .. } | ProposalForm::Dense { .. }
    );
    verification.reads_draft && is_sent
}

/// Siblings of `lead`, the draft token on level `level`, drawn without replacement: each from what those before it leave
/// of `probs` (vocab), the distribution that `lead` was drawn from, as it is sent. There are fewer than the shape has
/// where it has fewer tokens. `probs` is written over.
pub fn drawn_siblings<F: Real>(
    shape: TreeShape,
    probs: &mut [F],
    lead: TokenId,
    level: u32,
    chance: &mut impl Chance<F>,
) -> Vec<TokenId> {
    let wanted = shape.width().saturating_sub(1);
    let mut drawn = Vec::with_capacity(wanted as usize);
    let mut last = lead;
    for index in 0..wanted {
        probs[last as usize] = F::zero();
        if probs.iter().all(|&mass| mass == F::zero()) {
            break;
        }
        last = chance.token(Purpose::Sibling, level * MOST_SIBLINGS + index, probs);
        drawn.push(last);
    }
    drawn
}
