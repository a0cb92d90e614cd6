//! The distribution by which a token left its last reviewer.
//!
//! A reviewer with distribution m that accepts a token t, proposed by distribution e, with probability
//! `min(1, l·m(t)/e(t))`, and replaces it by one of `norm((m - e)_+)` otherwise, does not emit m but
//! `out = min(e, l·m) + rej · norm((m - e)_+)`, `rej = Σ (e - l·m)_+`. With lenience l = 1 that is m.
//! The next reviewer must test against `out`: testing against m would bias the output.

use crate::TokenId;
use crate::proposal::{BadProposal, ProposalForm, ProposalProbs};
use crate::real::{Real, sum_of_pairs};

/// The distribution a draft token was emitted by.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Emission<F> {
    /// Not kept: where tokens are compared instead of distributions.
    #[default]
    NotKept,
    /// The one-hot distribution of the token: Max-Gram's, and everybody's at temperature 0.
    Point,
    /// The reviewer's own distribution, cut to the form in which it is sent; the token was drawn from it.
    Sent(ProposalProbs),
    /// The distribution of a lenient review (vocab).
    Lenient(Vec<F>),
}

impl<F: Real> Emission<F> {
    /// The proposal that is sent to the verifier, in a session of `form`.
    pub fn proposal(self, form: ProposalForm) -> ProposalProbs {
        match self {
            _ if form == ProposalForm::None => ProposalProbs::None,
            Self::NotKept => ProposalProbs::None,
            Self::Point => ProposalProbs::Point,
            Self::Sent(probs) => probs,
            Self::Lenient(probs) => {
                ProposalProbs::Dense(probs.iter().map(|mass| mass.as_f64() as f32).collect())
            }
        }
    }

    /// Writes the distribution of the token `token` to `probs` (vocab), without the rounding of
    /// [`Emission::proposal`].
    ///
    /// # Errors
    /// If it is not kept, or of another vocabulary.
    pub fn write_probs(&self, token: TokenId, probs: &mut [F]) -> Result<(), BadProposal> {
        match self {
            Self::NotKept => Err(BadProposal::Missing),
            Self::Point => ProposalProbs::Point.write_probs(token, probs),
            Self::Sent(reported) => reported.write_probs(token, probs),
            Self::Lenient(row) if row.len() == probs.len() => {
                probs.copy_from_slice(row);
                Ok(())
            }
            Self::Lenient(row) => Err(BadProposal::Length {
                found: row.len(),
                expected: probs.len(),
            }),
        }
    }
}

/// The probability with which a reviewer of distribution `reviewer` (vocab) keeps `token`, proposed by the distribution
/// `proposed`, where it is below 1.
pub fn acceptance_ratio<F: Real>(
    proposed: &[F],
    reviewer: &[F],
    lenience: f64,
    token: TokenId,
) -> F {
    let at = token as usize;
    F::from_f64(lenience * reviewer[at].as_f64() / proposed[at].as_f64())
}

/// The distribution `out` (vocab) by which a token proposed by the distribution `proposed` leaves a reviewer of
/// distribution `reviewer`.
pub fn emitted<F: Real>(proposed: &[F], reviewer: &[F], lenience: f64) -> Vec<F> {
    let over = |e: F, m: F| (e.as_f64() - lenience * m.as_f64()).max(0.0);
    let under = |e: F, m: F| (m.as_f64() - e.as_f64()).max(0.0);
    let rejected = sum_of_pairs(proposed, reviewer, over);
    let residual = sum_of_pairs(proposed, reviewer, under);
    // Without a residual the distributions are equal, and nothing is rejected.
    let share = if residual > 0.0 {
        rejected / residual
    } else {
        0.0
    };
    let pairs = proposed.iter().zip(reviewer);
    let out = |(&e, &m): (&F, &F)| {
        F::from_f64(e.as_f64().min(lenience * m.as_f64()) + share * under(e, m))
    };
    pairs.map(out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROPOSED: [f64; 4] = [0.6, 0.3, 0.1, 0.0];
    const REVIEWER: [f64; 4] = [0.2, 0.3, 0.1, 0.4];

    #[test]
    fn a_strict_review_emits_the_reviewers_distribution_and_a_lenient_one_a_distribution_between() {
        let strict = emitted(&PROPOSED, &REVIEWER, 1.0);
        for (out, m) in strict.iter().zip(REVIEWER) {
            assert!((out - m).abs() < 1e-15);
        }
        // .6 is kept with probability 2 · .2 / .6; the rest, .2, goes to the only residual token.
        let lenient = emitted(&PROPOSED, &REVIEWER, 2.0);
        for (out, expected) in lenient.iter().zip([0.4, 0.3, 0.1, 0.2]) {
            assert!((out - expected).abs() < 1e-15);
        }
        assert_eq!(emitted(&PROPOSED, &REVIEWER, 3.5), PROPOSED);
        assert_eq!(emitted(&PROPOSED, &PROPOSED, 1.0), PROPOSED);
    }

    #[test]
    fn what_is_told_is_the_distribution() {
        let mut row = [0.0_f64; 4];
        let form = ProposalForm::Dense { half: false };
        let lenient = Emission::Lenient(vec![0.25, 0.5, 0.25, 0.0]);
        lenient.write_probs(1, &mut row).expect("a distribution");
        assert_eq!(row, [0.25, 0.5, 0.25, 0.0]);
        assert!(lenient.write_probs(1, &mut [0.0; 3]).is_err());
        let reported = ProposalProbs::Dense(vec![0.25, 0.5, 0.25, 0.0]);
        assert_eq!(lenient.clone().proposal(form), reported);
        assert_eq!(lenient.proposal(ProposalForm::None), ProposalProbs::None);
        assert_eq!(Emission::<f64>::Point.proposal(form), ProposalProbs::Point);
        Emission::Point
            .write_probs(2, &mut row)
            .expect("a distribution");
        assert_eq!(row, [0.0, 0.0, 1.0, 0.0]);
        assert!(Emission::NotKept.write_probs(2, &mut row).is_err());
    }
}
