//! What the verifier is told of the law a draft token was drawn from.

use crate::TokenId;
use crate::pipeline::normalise;
use crate::real::{Real, argmax};

/// How much of a draft law is sent with each draft token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalForm {
    /// Nothing: the verification does not use the law.
    None,
    /// Nothing, because the law is the one-hot law of the token itself.
    Point,
    /// The law cut to its `top` most likely tokens and quantised; the token is drawn from that.
    Sparse {
        /// Most tokens kept; at least 1.
        top: u32,
    },
    /// The whole law in f32.
    Dense,
}

/// The law a draft token was drawn from, as the verifier sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal {
    /// Not told.
    None,
    /// One-hot at the token.
    Point,
    /// `q'(ids[i]) = weights[i] / Σ weights`: both sides compute this same law.
    Sparse {
        /// Token ids, most likely first.
        ids: Vec<TokenId>,
        /// Their integer weights, 1 to 65,535.
        weights: Vec<u16>,
    },
    /// A probability for each token of the vocabulary.
    Dense(Vec<f32>),
}

/// A proposal that is no law, or not one of the token it came with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProposal {
    /// The verification needs the law and none came.
    #[error("no draft law came with the token, and this verification needs one")]
    Missing,
    /// Ids and weights do not pair up, or a dense row has another length than the vocabulary.
    #[error("draft law has {found} entries, expected {expected}")]
    Length {
        /// Entries found.
        found: usize,
        /// Entries expected.
        expected: usize,
    },
    /// An entry is out of range, repeated, NaN, negative, or the mass is not 1.
    #[error("draft law is malformed: {0}")]
    Malformed(&'static str),
    /// The token cannot have been drawn from the law.
    #[error("draft law gives its own token {0} no mass")]
    TokenWithoutMass(TokenId),
}

impl Proposal {
    /// Cuts and quantises `law` (vocab) to `form`, in place, and returns what is sent. The token
    /// must be drawn from `law` as it stands afterwards: drawing from one law and sending another
    /// would bias the output.
    pub fn of<F: Real>(law: &mut [F], form: ProposalForm) -> Self {
        match form {
            ProposalForm::None => Self::None,
            ProposalForm::Point => Self::Point,
            ProposalForm::Dense => {
                let row = law.iter().map(|&mass| mass.as_f64() as f32).collect();
                // In f64 the row sent is rounded, so the row drawn from is rounded too.
                for (mass, &sent) in law.iter_mut().zip(&row as &Vec<f32>) {
                    *mass = F::from_f32(sent);
                }
                Self::Dense(row)
            }
            ProposalForm::Sparse { top } => {
                let (ids, weights) = quantise(law, top.max(1) as usize);
                write_weights(&ids, &weights, law);
                Self::Sparse { ids, weights }
            }
        }
    }

    /// Writes the law of the draft token `token` to `law` (vocab).
    ///
    /// # Errors
    /// If the proposal is missing, malformed, or gives the token no mass.
    pub fn write_law<F: Real>(&self, token: TokenId, law: &mut [F]) -> Result<(), BadProposal> {
        match self {
            Self::None => return Err(BadProposal::Missing),
            Self::Point => {
                law.fill(F::zero());
                law[token as usize] = F::one();
            }
            Self::Dense(row) => {
                if row.len() != law.len() {
                    return Err(BadProposal::Length {
                        found: row.len(),
                        expected: law.len(),
                    });
                }
                let mut mass = 0.0_f64;
                for (to, &from) in law.iter_mut().zip(row) {
                    if !(0.0..=1.001).contains(&from) {
                        return Err(BadProposal::Malformed("a probability is not within 0 to 1"));
                    }
                    mass += f64::from(from);
                    *to = F::from_f32(from);
                }
                if (mass - 1.0).abs() > 1e-3 {
                    return Err(BadProposal::Malformed(
                        "the probabilities do not add up to 1",
                    ));
                }
            }
            Self::Sparse { ids, weights } => {
                if ids.len() != weights.len() || ids.is_empty() {
                    let (found, expected) = (weights.len(), ids.len().max(1));
                    return Err(BadProposal::Length { found, expected });
                }
                if ids.iter().any(|&id| id as usize >= law.len()) {
                    return Err(BadProposal::Malformed("a token id is out of range"));
                }
                if weights.contains(&0) {
                    return Err(BadProposal::Malformed("a weight is 0"));
                }
                write_weights(ids, weights, law);
                if law.iter().filter(|&&mass| mass > F::zero()).count() != ids.len() {
                    return Err(BadProposal::Malformed("a token id stands twice"));
                }
            }
        }
        if law[token as usize] > F::zero() {
            Ok(())
        } else {
            Err(BadProposal::TokenWithoutMass(token))
        }
    }
}

/// The `top` most likely tokens (lowest ids among equals) and their weights, the largest 65,535.
fn quantise<F: Real>(law: &[F], top: usize) -> (Vec<TokenId>, Vec<u16>) {
    let mut ids: Vec<TokenId> = (0..law.len() as u32)
        .filter(|&v| law[v as usize] > F::zero())
        .collect();
    let by_law = |a: &u32, b: &u32| {
        let order = law[*b as usize].partial_cmp(&law[*a as usize]);
        order.unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b))
    };
    if ids.len() > top {
        ids.select_nth_unstable_by(top - 1, by_law);
        ids.truncate(top);
    }
    ids.sort_unstable_by(by_law);
    let largest = law[argmax(law)].as_f64();
    let weight = |&id: &TokenId| {
        let scaled = law[id as usize].as_f64() / largest * f64::from(u16::MAX);
        (scaled.round() as u16).max(1)
    };
    let weights = ids.iter().map(weight).collect();
    (ids, weights)
}

fn write_weights<F: Real>(ids: &[TokenId], weights: &[u16], law: &mut [F]) {
    law.fill(F::zero());
    for (&id, &weight) in ids.iter().zip(weights) {
        law[id as usize] = F::from_f64(f64::from(weight));
    }
    normalise(law);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(form: ProposalForm, token: TokenId) {
        let mut drawn_from = vec![0.05_f32, 0.5, 0.2, 0.15, 0.1, 0.0];
        let proposal = Proposal::of(&mut drawn_from, form);
        let mut seen = vec![9.0_f32; 6];
        proposal.write_law(token, &mut seen).expect("a law");
        assert_eq!(seen, drawn_from, "{form:?}");
    }

    #[test]
    fn the_verifier_sees_exactly_the_law_drawn_from() {
        round_trip(ProposalForm::Sparse { top: 3 }, 1);
        round_trip(ProposalForm::Sparse { top: 100 }, 4);
        round_trip(ProposalForm::Dense, 0);
    }

    #[test]
    fn sparse_keeps_the_most_likely() {
        let mut law = vec![0.1_f64, 0.4, 0.4, 0.1];
        let Proposal::Sparse { ids, weights } =
            Proposal::of(&mut law, ProposalForm::Sparse { top: 3 })
        else {
            panic!("another form");
        };
        assert_eq!(ids, [1, 2, 0]);
        assert_eq!(weights, [65_535, 65_535, 16_384]);
        assert_eq!(law[3], 0.0);
    }

    #[test]
    fn malformed_laws_are_refused() {
        let mut law = vec![0.0_f32; 4];
        let sparse = |ids: &[u32], weights: &[u16]| Proposal::Sparse {
            ids: ids.into(),
            weights: weights.into(),
        };
        for (proposal, token) in [
            (Proposal::None, 0),
            (sparse(&[], &[]), 0),
            (sparse(&[0, 1], &[1]), 0),
            (sparse(&[9], &[1]), 0),
            (sparse(&[0, 0], &[1, 1]), 0),
            (sparse(&[0], &[0]), 0),
            (sparse(&[1], &[1]), 0),
            (Proposal::Dense(vec![1.0; 3]), 0),
            (Proposal::Dense(vec![1.0; 4]), 0),
            (Proposal::Dense(vec![f32::NAN, 1.0, 0.0, 0.0]), 1),
            (Proposal::Dense(vec![-0.5, 1.5, 0.0, 0.0]), 1),
            (Proposal::Dense(vec![0.0, 1.0, 0.0, 0.0]), 0),
        ] {
            assert!(
                proposal.write_law(token, &mut law).is_err(),
                "{proposal:?} for {token}"
            );
        }
    }
}
