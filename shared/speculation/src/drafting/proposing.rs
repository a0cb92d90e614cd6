//! How one draft token is drawn, and its siblings in a tree.

use super::TreeShape;
use crate::TokenId;
use crate::chance::Chance;
use crate::confidence::Confidence;
use crate::coupled::choice;
use crate::noise::{Noise, Purpose};
use crate::proposal::{Proposal, ProposalForm, ProposalProbs};
use crate::real::Real;
use crate::verification::{Draws, Verification};

/// Which parts of a draft distribution are sent to the verifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProposalOptions {
    /// How much of the sampling distribution.
    pub form: ProposalForm,
    /// Whether the confidence of the unscaled distribution.
    pub confidence: bool,
    /// Whether unscaled probabilities, beside a sparse or dense distribution.
    pub unscaled: bool,
}

/// Cuts the draft distribution `probs` (vocab) to what can be sent, in place, and returns the proposal. The draft
/// token must be drawn from `probs` as it stands afterwards.
///
/// `unscaled` is the unscaled distribution (vocab); none if it is `probs` as it comes. A sparse or half-precision
/// proposal always carries unscaled probabilities where they are wanted, since cutting and rounding
/// change the distribution; a dense one in single precision only if they are another row. For that a distribution that
/// comes without an unscaled one is copied first.
pub fn propose<F: Real>(
    probs: &mut [F],
    unscaled: Option<&[F]>,
    confidence: Confidence<F>,
    proposal_options: ProposalOptions,
) -> Proposal {
    let changes = matches!(
        proposal_options.form,
        ProposalForm::Sparse { .. } | ProposalForm::Dense { half: true }
    );
    let copy = (proposal_options.unscaled && changes && unscaled.is_none()).then(|| probs.to_vec());
    let unscaled = unscaled
        .or(copy.as_deref())
        .filter(|_| proposal_options.unscaled);
    let probs = ProposalProbs::of(probs, proposal_options.form);
    let single = |value: F| value.as_f64() as f32;
    let unscaled = unscaled.and_then(|row| match &probs {
        ProposalProbs::Sparse { ids, .. } => {
            Some(ids.iter().map(|&id| single(row[id as usize])).collect())
        }
        ProposalProbs::Dense(_) => Some(row.iter().map(|&value| single(value)).collect()),
        ProposalProbs::None | ProposalProbs::Point => None,
    });
    Proposal {
        probs,
        confidence: proposal_options.confidence.then(|| Confidence {
            max: single(confidence.max),
            entropy: single(confidence.entropy),
        }),
        unscaled,
        logprob: None,
    }
}

/// Draws the draft token at `offset` after `base_len` output tokens from `probs` (vocab), as
/// [`propose`] left it.
///
/// Where the verifier compares tokens it is the drafter's choice under the shared noise; where it
/// compares distributions it is drawn by `chance`.
pub fn draw<F: Real>(
    probs: &[F],
    verification: Verification,
    noise: &Noise,
    (base_len, offset): (u32, u32),
    chance: &mut impl Chance<F>,
) -> TokenId {
    match verification.draws {
        Draws::Shared => choice(probs, noise, base_len + offset),
        Draws::Own => chance.token(Purpose::Draft, offset, probs),
    }
}

/// More than the widest shape has, so that no two draws of a block share a number.
const MOST_SIBLINGS: u32 = 64;

/// Whether the siblings of a tree are [`drawn_siblings`]: those that a verification tests against their distribution,
/// as far as `form` sends one.
pub fn draws_siblings(verification: Verification, form: ProposalForm) -> bool {
    verification.reads_draft && form.sends_distributions()
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

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: [f64; 5] = [0.1, 0.45, 0.05, 0.4, 0.0];
    const UNSCALED: [f64; 5] = [0.2, 0.3, 0.15, 0.25, 0.1];
    const SURE: Confidence<f64> = Confidence {
        max: 0.3,
        entropy: 1.5,
    };

    fn reported(form: ProposalForm, unscaled: Option<&[f64]>) -> Proposal {
        let proposal_options = ProposalOptions {
            form,
            confidence: true,
            unscaled: true,
        };
        let mut probs = LAW;
        let proposal = propose(&mut probs, unscaled, SURE, proposal_options);
        let mut sent = LAW;
        assert_eq!(proposal.probs, ProposalProbs::of(&mut sent, form));
        assert_eq!(
            probs, sent,
            "the distribution to draw from is the distribution sent"
        );
        let (max, entropy) = (0.3, 1.5);
        assert_eq!(proposal.confidence, Some(Confidence { max, entropy }));
        proposal
    }

    #[test]
    fn a_sparse_proposal_tells_the_unscaled_probabilities_of_its_ids() {
        let form = ProposalForm::Sparse { top: 2 };
        let expected = |row: [f64; 5]| Some(vec![row[1] as f32, row[3] as f32]);
        assert_eq!(reported(form, Some(&UNSCALED)).unscaled, expected(UNSCALED));
        // The unscaled distribution is the distribution before the cut, not what the cut left of it.
        assert_eq!(reported(form, None).unscaled, expected(LAW));
    }

    #[test]
    fn a_dense_proposal_tells_the_unscaled_distribution_if_it_is_another() {
        let form = ProposalForm::Dense { half: false };
        let expected = UNSCALED.map(|mass| mass as f32).to_vec();
        assert_eq!(reported(form, Some(&UNSCALED)).unscaled, Some(expected));
        assert_eq!(reported(form, None).unscaled, None);
    }

    #[test]
    fn nothing_is_told_that_was_not_asked_for() {
        let form = ProposalForm::Sparse { top: 2 };
        let proposal_options = ProposalOptions {
            form,
            ..Default::default()
        };
        let proposal = propose(&mut { LAW }, Some(&UNSCALED), SURE, proposal_options);
        assert_eq!((proposal.confidence, proposal.unscaled), (None, None));
        assert_eq!(reported(ProposalForm::None, Some(&UNSCALED)).unscaled, None);
        assert_eq!(
            reported(ProposalForm::Point, Some(&UNSCALED)).unscaled,
            None
        );
        let untold = propose(&mut { LAW }, None, SURE, ProposalOptions::default());
        assert_eq!(untold, Proposal::default());
    }

    /// Answers every draw with one token, and no accept test.
    struct Always(TokenId);

    impl Chance<f64> for Always {
        fn accepts(&mut self, _: u32, _: f64) -> bool {
            panic!("drafting tests nothing")
        }

        fn token(&mut self, purpose: Purpose, offset: u32, _: &[f64]) -> TokenId {
            assert_eq!((purpose, offset), (Purpose::Draft, 3));
            self.0
        }
    }

    #[test]
    fn where_tokens_are_compared_the_shared_noise_draws() {
        let noise = Noise::new(1, 0);
        let rollback = 1.0;
        let drawn = |verification, base_len| {
            draw(&LAW, verification, &noise, (base_len, 3), &mut Always(2))
        };
        for base_len in 0..20 {
            let shared = choice(&LAW, &noise, base_len + 3);
            assert_eq!(drawn(Verification::COUPLED, base_len), shared);
            assert_eq!(drawn(Verification::bild(rollback), base_len), shared);
            for verification in [
                Verification::TOKEN,
                Verification::BLOCK,
                Verification::BLOCK_GREEDY,
            ] {
                assert_eq!(drawn(verification, base_len), 2);
            }
        }
    }
}
