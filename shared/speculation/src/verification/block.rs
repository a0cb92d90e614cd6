//! Block verification: the longest prefix of the block whose joint test passes.
//!
//! Sun et al., "Block Verification Accelerates Speculative Decoding" (ICLR 2025), Algorithm 2. With
//! `c_0 = 1` and `c_i = min(1, c_(i-1) π(x_i)/q(x_i))`, truncated at every step, the length i is
//! tested with probability
//!
//! ```text
//! h_i = R_i / (R_i + 1 - c_i),   R_i = Σ_x (c_i π(x) - q(x))_+ after x_1..x_i,   h_L = c_L
//! ```
//!
//! Every length has its own uniform, and the *largest* length that passes stands: a failure says
//! nothing about longer prefixes. Length i draws its uniform at offset i - 1 of the round. The token
//! after it comes from `norm((c_i π - q)_+)`, or from π after the whole block. Nothing is carried into
//! the next round.

use super::residual::{ResidualWeights, excess, residual};
use super::table::{Procedure, Verification};
use super::{DraftChain, LastToken, RoundDistributions, Verdict};
use crate::chance::Chance;
use crate::noise::Purpose;
use crate::real::Real;

impl Verification {
    /// The longest prefix of the block stands whose joint test passes.
    pub const BLOCK: Self = Self {
        name: "block",
        summary: "the longest beginning of the block that passes a joint test is accepted",
        wire: 3,
        procedure: Procedure::Block,
        ..Self::TOKEN
    };
}

/// The probability `R / (R + 1 - r)` with which a length below the block's passes its test, from
/// the distributions after it and the joint ratio r of the prefix, `log_ratio` its natural logarithm; 1 for a
/// ratio of 1 or more, so that equal models always pass.
pub fn pass_probability<F: Real>(log_ratio: f64, target: &[F], draft: &[F]) -> f64 {
    if log_ratio >= 0.0 {
        return 1.0;
    }
    let left = excess(ResidualWeights::of(log_ratio), target, draft);
    left / (left - libm::expm1(log_ratio))
}

/// Decides `block`. Every position of the block is asked for, but for those after a token that the
/// target gives no mass, which no prefix can hold.
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
    // ln c of the prefix so far, and of the longest that passed.
    let mut joint = 0.0_f64;
    let (mut accepted, mut accepted_joint) = (0, 0.0);
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        if offset > 0 {
            let pass = pass_probability(joint, position.target, position.draft);
            if chance.accepts(offset as u32 - 1, F::from_f64(pass)) {
                (accepted, accepted_joint) = (offset, joint);
            }
        }
        joint = (joint + position.log_ratio(draft)?).min(0.0);
        if joint == f64::NEG_INFINITY {
            break;
        }
    }
    let length = drafts.len();
    let whole = F::from_f64(joint.exp_nonpositive());
    if length == 0 || (whole > F::zero() && chance.accepts(length as u32 - 1, whole)) {
        if ended {
            return Ok(Verdict::ended(drafts));
        }
        let bonus = chance.token(
            Purpose::Bonus,
            length as u32,
            distributions.at(length)?.target,
        );
        return Ok(Verdict::with_last(drafts, bonus, LastToken::Bonus));
    }
    let position = distributions.at(accepted)?;
    residual(accepted_joint, position.target, position.draft);
    let recovered = chance.token(Purpose::Residual, accepted as u32, position.draft);
    let accepted = &drafts[..accepted];
    Ok(Verdict::with_last(
        accepted,
        recovered,
        LastToken::Recovered,
    ))
}
