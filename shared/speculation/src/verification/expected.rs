//! How many tokens of a given draft block a verification accepts, as a distribution.
//!
//! For an offline evaluator and for tests: the accept tests are those of the shipped verifications,
//! each asked for its probability instead of being decided.

use super::{Block, RoundDistributions, Verification, bild, block, block_greedy, token};
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
    let chain = Block {
        drafts,
        base_len: 0,
        ends: &[],
        horizon: length as u32,
        layers: &[],
    };
    let mut tests = Tests {
        probabilities: vec![0.0; length],
        answer: false,
    };
    match verification {
        Verification::Token => {
            tests.answer = true;
            token::verify(&chain, &mut tests, distributions)?;
            Ok(first_refusal(&tests.probabilities))
        }
        Verification::Coupled => {
            for (offset, &draft) in drafts.iter().enumerate() {
                let position = distributions.at(offset)?;
                position.drawn_with(draft)?;
                let given = conditional_acceptance(position.draft, position.target, draft);
                tests.probabilities[offset] = given.as_f64();
            }
            Ok(first_refusal(&tests.probabilities))
        }
        Verification::Bild { rollback } => {
            for (offset, &draft) in drafts.iter().enumerate() {
                let position = distributions.at(offset)?;
                let unscaled = position.target_unscaled.unwrap_or(position.target);
                let keeps = bild::keeps(unscaled, draft, rollback);
                tests.probabilities[offset] = f64::from(u8::from(keeps));
            }
            Ok(first_refusal(&tests.probabilities))
        }
        Verification::Block => {
            block::verify(&chain, &mut tests, distributions)?;
            Ok(longest_pass(&tests.probabilities))
        }
        Verification::BlockGreedy => {
            block_greedy::verify(&chain, &mut tests, distributions)?;
            // The longest length is tested first.
            tests.probabilities.reverse();
            Ok(longest_pass(&tests.probabilities))
        }
    }
}

/// Writes down the probability of every accept test.
struct Tests {
    probabilities: Vec<f64>,
    /// What every test is answered with, so that all of them are made.
    answer: bool,
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
