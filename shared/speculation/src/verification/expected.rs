//! How many tokens of a given draft block a verification accepts, as a distribution.
//!
//! For an offline evaluator and for tests: the accept tests are those of the shipped verifications,
//! each requested for its probability instead of being decided.

use super::table::Procedure;
use super::{DraftChain, RoundDistributions, Verification, bild, block, block_greedy, token};
use crate::TokenId;
use crate::chance::Chance;
use crate::coupled::conditional_acceptance;
use crate::noise::Purpose;
use crate::real::Real;

/// P(accepted length = i) for i = 0..=L of the draft tokens `drafts` (L) under `distributions`.
///
/// The draft tokens are taken to end nothing, and no residual layers to be live. Coupled
/// verification takes them to be the drafter's choices under the shared noise.
///
/// # Errors
/// Whatever `distributions` fails with, and [`BadProposal`](crate::proposal::BadProposal) where a draft
/// distribution is missing or gives its own token no mass.
pub fn length_distribution<F: Real, L: RoundDistributions<F>>(
    verification: Verification,
    drafts: &[TokenId],
    distributions: &mut L,
) -> Result<Vec<f64>, L::Error> {
    let length = drafts.len();
    let chain = DraftChain {
        drafts,
        base_len: 0,
        ends: &[],
        horizon: (length as u32).into(),
        layers: &[],
    };
    Ok(match verification.procedure {
        Procedure::Coupled => first_refusal(&coupled_passes(drafts, distributions)?),
        Procedure::Token => {
            let mut tests = Tests::answered(&chain, true);
            token::verify(&chain, &mut tests, distributions)?;
            first_refusal(&tests.probabilities)
        }
        Procedure::Block => {
            let mut tests = Tests::answered(&chain, false);
            block::verify(&chain, &mut tests, distributions)?;
            longest_pass(&tests.probabilities)
        }
        Procedure::BlockGreedy => {
            let mut tests = Tests::answered(&chain, false);
            block_greedy::verify(&chain, &mut tests, distributions)?;
            // The longest length is tested first.
            tests.probabilities.reverse();
            longest_pass(&tests.probabilities)
        }
        Procedure::Bild { keeps_repeated } => {
            let rollback = verification.rollback();
            let passes = bild_passes(drafts, rollback, keeps_repeated, distributions)?;
            first_refusal(&passes)
        }
    })
}

/// The probability of each of `drafts` that the target chooses it too.
fn coupled_passes<F: Real, L: RoundDistributions<F>>(
    drafts: &[TokenId],
    distributions: &mut L,
) -> Result<Vec<f64>, L::Error> {
    let mut passes = Vec::new();
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        position.drawn_with(draft)?;
        let given = conditional_acceptance(position.draft, position.target, draft);
        passes.push(given.as_f64());
    }
    Ok(passes)
}

/// The probability of each of `drafts` that it stands under BiLD.
fn bild_passes<F: Real, L: RoundDistributions<F>>(
    drafts: &[TokenId],
    rollback: f64,
    keeps_repeated: bool,
    distributions: &mut L,
) -> Result<Vec<f64>, L::Error> {
    let mut passes = Vec::new();
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        let unscaled = position.target_unscaled.unwrap_or(position.target);
        if bild::keeps(unscaled, draft, rollback) {
            passes.push(1.0);
            continue;
        }
        // The target chooses the token again as often as its distribution says.
        let again = position.target[draft as usize].as_f64();
        passes.push(if keeps_repeated { again } else { 0.0 });
        break;
    }
    passes.resize(drafts.len(), 1.0);
    Ok(passes)
}

/// Writes down the probability of every accept test.
struct Tests {
    probabilities: Vec<f64>,
    answer: bool,
}

impl Tests {
    /// Every test of `block` is answered with `answer`, one by which all of them are made.
    fn answered(block: &DraftChain<'_>, answer: bool) -> Self {
        Self {
            probabilities: vec![0.0; block.drafts.len()],
            answer,
        }
    }
}

impl<F: Real> Chance<F> for Tests {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        self.probabilities[offset as usize] = ratio.as_f64().min(1.0);
        self.answer
    }

    fn token(&mut self, _purpose: Purpose, _offset: u32, _probs: &[F]) -> TokenId {
        0
    }
}

/// The distribution of the number of passes before the first refusal.
fn first_refusal(passes: &[f64]) -> Vec<f64> {
    let mut so_far = 1.0;
    let mut probs: Vec<f64> = Vec::with_capacity(passes.len() + 1);
    for pass in passes {
        probs.push(so_far * (1.0 - pass));
        so_far *= pass;
    }
    probs.push(so_far);
    probs
}

/// The distribution of the largest i whose test `passes[i - 1]` passes, 0 if none does.
fn longest_pass(passes: &[f64]) -> Vec<f64> {
    let mut none_longer = 1.0;
    let mut probs = vec![0.0; passes.len() + 1];
    for (at, pass) in passes.iter().enumerate().rev() {
        probs[at + 1] = none_longer * pass;
        none_longer *= 1.0 - pass;
    }
    probs[0] = none_longer;
    probs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_of_the_length_follow_from_the_tests() {
        assert_eq!(first_refusal(&[0.5, 0.25]), [0.5, 0.375, 0.125]);
        assert_eq!(longest_pass(&[0.5, 0.25]), [0.375, 0.375, 0.25]);
        assert_eq!(first_refusal(&[]), [1.0]);
        assert_eq!(longest_pass(&[]), [1.0]);
    }
}
