//! What is sent to the verifier of the distribution that a draft token was drawn from.

use half::f16;

use crate::TokenId;
use crate::confidence::Confidence;
use crate::real::{Real, sum_of};
use crate::simd::kernel;

/// Most tokens of a sparse draft distribution.
pub const SPARSE_MOST: u32 = 1024;

/// How much of a draft distribution is sent with each draft token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProposalForm {
    /// Nothing: the verification does not use the distribution.
    #[default]
    None,
    /// Nothing, because the distribution is the one-hot distribution of the token itself.
    Point,
    /// The distribution cut to its `top` most likely tokens and quantised; the token is drawn from that.
    Sparse {
        /// Most tokens kept; at least 1.
        top: u32,
    },
    /// The whole distribution.
    Dense {
        /// Whether it is rounded to half precision and normalised anew.
        half: bool,
    },
}

impl ProposalForm {
    /// Whether distributions are sent. A one-hot one, such as Max-Gram's within a cascade, is then sent as a point.
    pub fn sends_distributions(self) -> bool {
        matches!(self, Self::Sparse { .. } | Self::Dense { .. })
    }
}

/// What the verifier is told of the draft model at one position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The sampling distribution.
    pub probs: ProposalProbs,
    /// Confidence of the whole unscaled distribution, where the target distribution needs it.
    pub confidence: Option<Confidence<f32>>,
    /// Unscaled probabilities, where the target distribution needs them: of the ids of a sparse distribution
    /// in their order, or of the whole vocabulary beside a dense one.
    pub unscaled: Option<Vec<f32>>,
    /// Natural logarithm of the drafted token's unscaled probability, where the plan scores it.
    pub logprob: Option<f32>,
}

/// The distribution a draft token was drawn from, as the verifier sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ProposalProbs {
    /// Not told.
    #[default]
    None,
    /// One-hot at the token.
    Point,
    /// `q'(ids[i]) = weights[i] / Σ weights`: both sides compute this same distribution.
    Sparse {
        /// Token ids, most likely first.
        ids: Vec<TokenId>,
        /// Their integer weights, 1 to 65,535.
        weights: Vec<u16>,
    },
    /// A probability for each token of the vocabulary, as sent: rounded to half precision where the
    /// form says so. The distribution is the row divided by its sum, which both sides compute alike.
    Dense(Vec<f32>),
}

/// Tokens looked at together in the search for the most likely.
const BLOCK: usize = 64;

/// A proposal that is no distribution, or not one of the token it came with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProposal {
    /// The verification needs the distribution and none came.
    #[error("no draft distribution came with the token, and this verification needs one")]
    Missing,
    /// Ids and weights do not pair up, or a dense row has another length than the vocabulary.
    #[error("draft distribution has {found} entries, expected {expected}")]
    Length {
        /// Entries found.
        found: usize,
        /// Entries expected.
        expected: usize,
    },
    /// An entry is out of range, repeated, NaN, negative, or the mass is not 1.
    #[error("draft distribution is malformed: {0}")]
    Malformed(&'static str),
    /// The distribution at the position after the block is needed and none came.
    #[error(
        "no draft distribution came for the position after the block, and this round needs one"
    )]
    MissingBonus,
    /// The target distribution reads something else of the draft model that did not come.
    #[error("the target distribution needs the draft model's {0}, and none came")]
    NotKept(&'static str),
    /// Something else told of the draft model is out of range.
    #[error("the draft model's {0} is out of range")]
    OutOfRange(&'static str),
    /// The token cannot have been drawn from the distribution.
    #[error("draft distribution gives its own token {0} no mass")]
    TokenWithoutMass(TokenId),
}

impl ProposalProbs {
    /// Cuts and quantises `probs` (vocab) to `form`, in place, and returns what is sent. The token
    /// must be drawn from `probs` as it stands afterwards: drawing from one distribution and sending another
    /// would bias the output.
    pub fn of<F: Real>(probs: &mut [F], form: ProposalForm) -> Self {
        match form {
            ProposalForm::None => Self::None,
            ProposalForm::Point => Self::Point,
            ProposalForm::Dense { half } => {
                let row: Vec<f32> = probs.iter().map(|mass| sent(mass.as_f64(), half)).collect();
                let mass = sum_of(&row, f64::from);
                write_dense(&row, probs, mass);
                Self::Dense(row)
            }
            ProposalForm::Sparse { top } => {
                let (ids, weights) = quantise(probs, top.max(1) as usize);
                write_weights(&ids, &weights, probs).expect("every id is kept once");
                Self::Sparse { ids, weights }
            }
        }
    }

    /// Writes the distribution of the draft token `token` to `probs` (vocab).
    ///
    /// # Errors
    /// If the proposal is missing, malformed, or gives the token no mass.
    pub fn write_probs<F: Real>(&self, token: TokenId, probs: &mut [F]) -> Result<(), BadProposal> {
        if matches!(self, Self::Point) {
            probs.fill(F::zero());
            probs[token as usize] = F::one();
            return Ok(());
        }
        self.write(probs)?;
        if probs[token as usize] > F::zero() {
            Ok(())
        } else {
            Err(BadProposal::TokenWithoutMass(token))
        }
    }

    /// Writes the distribution to `probs` (vocab), where no token was drawn from it.
    ///
    /// # Errors
    /// If the proposal is missing or malformed; a point distribution is one only together with its token.
    pub fn write<F: Real>(&self, probs: &mut [F]) -> Result<(), BadProposal> {
        match self {
            Self::None => Err(BadProposal::Missing),
            Self::Point => Err(BadProposal::Malformed(
                "a point distribution has no token here",
            )),
            Self::Dense(row) => {
                let mass = check_dense(row, probs.len())?;
                write_dense(row, probs, mass);
                Ok(())
            }
            Self::Sparse { ids, weights } => {
                check_sparse(ids, weights, probs.len())?;
                write_weights(ids, weights, probs)
            }
        }
    }
}

/// Checks a dense distribution; its mass.
fn check_dense(row: &[f32], vocab_size: usize) -> Result<f64, BadProposal> {
    if row.len() != vocab_size {
        return Err(BadProposal::Length {
            found: row.len(),
            expected: vocab_size,
        });
    }
    let (is_in_range, mass) = range_and_mass(row);
    if !is_in_range {
        return Err(BadProposal::Malformed("a probability is not within 0 to 1"));
    }
    // Half precision rounds off up to 2^-25 a token; a hundredth is that of 300,000.
    if (mass - 1.0).abs() > 1e-2 {
        return Err(BadProposal::Malformed(
            "the probabilities do not add up to 1",
        ));
    }
    Ok(mass)
}

fn check_sparse(ids: &[TokenId], weights: &[u16], vocab_size: usize) -> Result<(), BadProposal> {
    if ids.len() != weights.len() || ids.is_empty() {
        return Err(BadProposal::Length {
            found: weights.len(),
            expected: ids.len().max(1),
        });
    }
    if ids.iter().any(|&id| id as usize >= vocab_size) {
        return Err(BadProposal::Malformed("a token id is out of range"));
    }
    if weights.contains(&0) {
        return Err(BadProposal::Malformed("a weight is 0"));
    }
    Ok(())
}

/// A probability as it is sent.
fn sent(mass: f64, half: bool) -> f32 {
    let single = mass as f32;
    if half {
        f16::from_f32(single).to_f32()
    } else {
        single
    }
}

kernel! {
    /// Whether all values of `row` are probabilities, with some room for rounding, and their sum.
    fn range_and_mass<'a, F: Real>(row: &'a [F]) -> RangeAndMass {
        let most = F::from_f32(1.001);
        #[allow(
            clippy::needless_bitwise_bool,
            reason = "a branch a value would keep the loop from being vectorised"
        )]
        let in_range = |all: bool, &mass: &F| all & (mass >= F::zero()) & (mass <= most);
        // NaN is in no range.
        (row.iter().fold(true, in_range), sum_of(row, Real::as_f64))
    }
}

/// See [`range_and_mass`].
type RangeAndMass = (bool, f64);

kernel! {
    /// Writes `row`, whose sum is `mass`, divided by it.
    fn write_dense<'a, F: Real>(row: &'a [f32], probs: &'a mut [F], mass: f64) -> () {
        let total = F::from_f64(mass);
        for (probs, &sent) in probs.iter_mut().zip(row) {
            *probs = F::from_f32(sent) / total;
        }
    }
}

/// The `top` most likely tokens (lowest ids among equals) and their weights, the largest 65,535.
fn quantise<F: Real>(probs: &[F], top: usize) -> (Vec<TokenId>, Vec<u16>) {
    let by_probability = |a: &u32, b: &u32| {
        let order = probs[*b as usize].partial_cmp(&probs[*a as usize]);
        order.unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b))
    };
    let top = top.min(probs.len());
    // Tokens at or below the floor cannot be among the most likely any more: as ids grow, an equal
    // one would come after those already kept.
    let mut floor = F::zero();
    let mut ids: Vec<TokenId> = Vec::with_capacity(2 * top);
    for (block, masses) in probs.chunks(BLOCK).enumerate() {
        if !masses.iter().fold(false, |any, mass| any | mass.gt(&floor)) {
            continue;
        }
        for (lane, &mass) in masses.iter().enumerate() {
            if mass > floor {
                ids.push((block * BLOCK + lane) as TokenId);
                if ids.len() == 2 * top {
                    ids.select_nth_unstable_by(top - 1, by_probability);
                    ids.truncate(top);
                    floor = probs[ids[top - 1] as usize];
                }
            }
        }
    }
    ids.sort_unstable_by(by_probability);
    ids.truncate(top);
    let largest = ids.first().map_or(1.0, |&id| probs[id as usize].as_f64());
    let weight = |&id: &TokenId| {
        let scaled = probs[id as usize].as_f64() / largest * f64::from(u16::MAX);
        (scaled.round() as u16).max(1)
    };
    let weights = ids.iter().map(weight).collect();
    (ids, weights)
}

/// Writes `q'(ids[i]) = weights[i] / Σ weights`, and 0 elsewhere.
fn write_weights<F: Real>(
    ids: &[TokenId],
    weights: &[u16],
    probs: &mut [F],
) -> Result<(), BadProposal> {
    probs.fill(F::zero());
    let total: u64 = weights.iter().copied().map(u64::from).sum();
    let total = F::from_f64(total as f64);
    for (&id, &weight) in ids.iter().zip(weights) {
        let mass = &mut probs[id as usize];
        if *mass > F::zero() {
            return Err(BadProposal::Malformed("a token id stands twice"));
        }
        *mass = F::from_f64(f64::from(weight)) / total;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(form: ProposalForm, token: TokenId) {
        let mut drawn_from = vec![0.05_f32, 0.5, 0.2, 0.15, 0.1, 0.0];
        let proposal = ProposalProbs::of(&mut drawn_from, form);
        let mut seen = vec![9.0_f32; 6];
        proposal
            .write_probs(token, &mut seen)
            .expect("a distribution");
        assert_eq!(seen, drawn_from, "{form:?}");
    }

    #[test]
    fn the_verifier_sees_exactly_the_distribution_drawn_from() {
        round_trip(ProposalForm::Sparse { top: 3 }, 1);
        round_trip(ProposalForm::Sparse { top: 100 }, 4);
        round_trip(ProposalForm::Dense { half: false }, 0);
        round_trip(ProposalForm::Dense { half: true }, 3);
    }

    #[test]
    fn half_precision_rounds_the_row_and_the_distribution_is_the_rounded_row_normalised() {
        let mut probs = vec![0.1_f64, 0.2, 0.7, 1e-9];
        let ProposalProbs::Dense(row) =
            ProposalProbs::of(&mut probs, ProposalForm::Dense { half: true })
        else {
            panic!("another form");
        };
        assert_eq!(row, [0.099_975_586, 0.199_951_17, 0.700_195_3, 0.0]);
        assert!(row.iter().all(|&mass| f16::from_f32(mass).to_f32() == mass));
        let total: f64 = row.iter().map(|&mass| f64::from(mass)).sum();
        assert!(total != 1.0 && (probs.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        for (mass, &sent) in probs.iter().zip(&row) {
            assert!((mass - f64::from(sent) / total).abs() < 1e-15);
        }
    }

    #[test]
    fn the_most_likely_of_a_large_vocabulary_are_found() {
        for seed in 1..20_u32 {
            // Few distinct masses, so that ties abound; some of them 0.
            let probs: Vec<f32> = (0..5000_u32)
                .map(|v| (v.wrapping_mul(seed.wrapping_mul(2_654_435_761)) >> 24) as f32)
                .collect();
            let mut sorted: Vec<u32> = (0..5000).filter(|&v| probs[v as usize] > 0.0).collect();
            sorted.sort_by(|&a, &b| probs[b as usize].total_cmp(&probs[a as usize]));
            for top in [1, 7, 64, 300, 6000] {
                let (ids, _) = quantise(&probs, top);
                assert_eq!(
                    ids,
                    sorted[..top.min(sorted.len())],
                    "seed {seed} top {top}"
                );
            }
        }
    }

    #[test]
    fn sparse_keeps_the_most_likely() {
        let mut probs = vec![0.1_f64, 0.4, 0.4, 0.1];
        let ProposalProbs::Sparse { ids, weights } =
            ProposalProbs::of(&mut probs, ProposalForm::Sparse { top: 3 })
        else {
            panic!("another form");
        };
        assert_eq!(ids, [1, 2, 0]);
        assert_eq!(weights, [65_535, 65_535, 16_384]);
        assert_eq!(probs[3], 0.0);
    }

    #[test]
    fn malformed_distributions_are_refused() {
        let mut probs = vec![0.0_f32; 4];
        let sparse = |ids: &[u32], weights: &[u16]| ProposalProbs::Sparse {
            ids: ids.into(),
            weights: weights.into(),
        };
        for (proposal, token) in [
            (ProposalProbs::None, 0),
            (sparse(&[], &[]), 0),
            (sparse(&[0, 1], &[1]), 0),
            (sparse(&[9], &[1]), 0),
            (sparse(&[0, 0], &[1, 1]), 0),
            (sparse(&[0], &[0]), 0),
            (sparse(&[1], &[1]), 0),
            (ProposalProbs::Dense(vec![1.0; 3]), 0),
            (ProposalProbs::Dense(vec![1.0; 4]), 0),
            (ProposalProbs::Dense(vec![f32::NAN, 1.0, 0.0, 0.0]), 1),
            (ProposalProbs::Dense(vec![-0.5, 1.5, 0.0, 0.0]), 1),
            (ProposalProbs::Dense(vec![0.0, 1.0, 0.0, 0.0]), 0),
        ] {
            assert!(
                proposal.write_probs(token, &mut probs).is_err(),
                "{proposal:?} for {token}"
            );
        }
    }
}
