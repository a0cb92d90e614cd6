//! Greedy block verification: accepts the most a block can, and carries the residual on.
//!
//! Sun et al., "Optimal Block-Level Draft Verification for Accelerating Speculative Decoding" (first
//! version), Algorithm 3, as its proofs mean it. With the joint ratio `ρ_i = Π_(j<=i) π/q`, not
//! truncated, and `R_i = Σ_x (ρ_i π(x) - q(x))_+` after x_1..x_i, lengths are tested from the longest
//! down, each with its own uniform, and the first that passes stands:
//!
//! ```text
//! L with probability min(1, ρ_L),   i < L with probability 1 if ρ_i >= 1 else R_i / (R_i + 1 - ρ_i)
//! ```
//!
//! Length i draws its uniform at offset L - i of the round, in the order of the tests.
//!
//! After a refusal at length τ the next `horizon - τ` tokens are residual ([`super::layers`]); the
//! rounds after it verify against that modified target.
//!
//! If an end token cut the block, the test is that of the shorter block: drafting on after an end
//! would be drafting from π itself, where the ratio no longer moves and no residual is left below a
//! ratio of 1, so the longer lengths together pass exactly as often. Other outputs than the one that
//! ended could have gone on, though, so a layer lasts as long as the block was planned to.
//!
//! A stop rule makes the tree of possible blocks uneven: it goes on below some prefixes and not below others. With
//! masses `q(y)` and `π(y)` of the prefixes from the block's start, drafting brings `q(y)` to y. What stands there is
//! `min(q, π)(y)`, and the residual tokens bring `(π - q)(y)_+`, together `π(y)`. Below a y where drafting goes on both
//! are split anew, `E(y) = Σ_x (π(yx) - q(yx))_+ = q(y) R(y)` being residual; so the tests need no change. Below
//! one where it stops nothing is residual: all of `π(y)` goes on by π. So a layer is active wherever drafting would
//! have gone on, on the path that the output took, and not where the drafted path happened to end. A rule that looks at the
//! context alone is asked there by the next round, whose drafter begins at that place: if it drafts, the layers stand;
//! if it stops, [`Horizon::stopped`](super::layers::Horizon), they end.

use super::block::pass_probability;
use super::layers::{ResidualLayer, ResidualLayers};
use super::table::{Procedure, Verification};
use super::{DraftChain, LastToken, PositionDistributions, RoundDistributions, Verdict, log_ratio};
use crate::TokenId;
use crate::chance::Chance;
use crate::noise::Purpose;
use crate::proposal::BadProposal;
use crate::real::Real;

impl Verification {
    /// The most that a block can is accepted, and the residual is carried into later rounds.
    pub const BLOCK_GREEDY: Self = Self {
        name: "block-greedy",
        summary: "as much of the block as can be is accepted; the residual is carried into later rounds",
        wire: 4,
        carries_layers: true,
        bonus_may_differ: false,
        procedure: Procedure::BlockGreedy,
        ..Self::TOKEN
    };
}

/// A prefix of the block.
struct Prefix {
    /// ln ρ under the layered target.
    joint: f64,
    /// The probability with which its length passes when its turn comes.
    pass: f64,
    /// The layers after it.
    layers: ResidualLayers,
}

/// Decides `block`. Every position of the block is asked for, but for those after a token that the
/// target gives no mass; the position after it too, if it is accepted whole.
///
/// # Errors
/// Whatever `distributions` fails with, and [`BadProposal`] where a draft distribution is missing or gives its own
/// token no mass. With live layers the position after the block needs a draft distribution too:
/// [`BadProposal::MissingBonus`].
pub fn verify<F: Real, L: RoundDistributions<F>>(
    block: &DraftChain<'_>,
    chance: &mut impl Chance<F>,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let (drafts, ended) = block.until_end();
    let length = drafts.len();
    let mut probs = Vec::new();
    let (prefixes, whole) = prefixes(block, drafts, distributions, &mut probs)?;
    let passes = |chance: &mut _, at: usize, pass: f64| {
        Chance::accepts(chance, (length - at) as u32, F::from_f64(pass))
    };
    if let Some(whole) = whole
        && (length == 0 || passes(chance, length, whole.pass))
    {
        if ended {
            return Ok(Verdict::ended(drafts));
        }
        // Where drafting would not have gone on no layer is active.
        let layers = if block.horizon.stopped {
            ResidualLayers::default()
        } else {
            whole.layers
        };
        return bonus(drafts, layers, chance, distributions, &mut probs);
    }
    let longest = (1..prefixes.len())
        .rev()
        .find(|&at| passes(chance, at, prefixes[at].pass))
        .unwrap_or(0);
    let horizon = block.horizon.len.max(length as u32);
    recovered(
        drafts,
        longest,
        &prefixes[longest],
        horizon,
        chance,
        distributions,
        &mut probs,
    )
}

/// The prefixes shorter than the block, from the empty one on, and the block itself; less those that
/// hold a token without mass. `probs` is scratch for layered distributions.
fn prefixes<F: Real, L: RoundDistributions<F>>(
    block: &DraftChain<'_>,
    drafts: &[TokenId],
    distributions: &mut L,
    probs: &mut Vec<F>,
) -> Result<(Vec<Prefix>, Option<Prefix>), L::Error> {
    let mut prefixes = Vec::with_capacity(drafts.len());
    let (mut joint, mut layers) = (0.0, ResidualLayers::new(block.layers));
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        let drawn_with = position.drawn_with(draft)?;
        let target = layered(&mut layers, &position, probs);
        let below = Prefix {
            joint,
            pass: pass_probability(joint, target, position.draft),
            layers: layers.clone(),
        };
        prefixes.push(below);
        joint += log_ratio(target[draft as usize], drawn_with);
        if joint == f64::NEG_INFINITY {
            return Ok((prefixes, None));
        }
        layers.advance(position.target[draft as usize], drawn_with);
    }
    let pass = joint.min(0.0).exp_nonpositive();
    let whole = Prefix {
        joint,
        pass,
        layers,
    };
    Ok((prefixes, Some(whole)))
}

/// The target distribution at a position with its layers; a copy only if there are any.
fn layered<'a, F: Real>(
    layers: &mut ResidualLayers,
    position: &'a PositionDistributions<'_, F>,
    probs: &'a mut Vec<F>,
) -> &'a [F] {
    if layers.is_empty() {
        return position.target;
    }
    layers.probs(position.target, position.draft, probs);
    probs
}

/// All of `drafts` stand; one more token from the layered target.
fn bonus<F: Real, L: RoundDistributions<F>>(
    drafts: &[TokenId],
    mut layers: ResidualLayers,
    chance: &mut impl Chance<F>,
    distributions: &mut L,
    probs: &mut Vec<F>,
) -> Result<Verdict, L::Error> {
    let offset = drafts.len();
    let position = distributions.at(offset)?;
    if !layers.is_empty() && position.draft.is_empty() {
        return Err(BadProposal::MissingBonus.into());
    }
    let target = layered(&mut layers, &position, probs);
    let bonus = chance.token(Purpose::Bonus, offset as u32, target);
    let mut verdict = Verdict::with_last(drafts, bonus, LastToken::Bonus);
    if !layers.is_empty() {
        let at = bonus as usize;
        layers.advance(position.target[at], position.draft[at]);
        verdict.layers = layers.into_layers();
    }
    Ok(verdict)
}

/// The first `longest` of `drafts` stand; the residual is laid on top, and gives the next token.
fn recovered<F: Real, L: RoundDistributions<F>>(
    drafts: &[TokenId],
    longest: usize,
    prefix: &Prefix,
    horizon: u32,
    chance: &mut impl Chance<F>,
    distributions: &mut L,
    probs: &mut Vec<F>,
) -> Result<Verdict, L::Error> {
    let position = distributions.at(longest)?;
    let mut layers = prefix.layers.clone();
    layers.push(ResidualLayer {
        log_rho: prefix.joint,
        remaining: horizon - longest as u32,
    });
    let target = layered(&mut layers, &position, probs);
    let recovered = chance.token(Purpose::Residual, longest as u32, target);
    let at = recovered as usize;
    layers.advance(position.target[at], position.draft[at]);
    let mut verdict = Verdict::with_last(&drafts[..longest], recovered, LastToken::Recovered);
    verdict.layers = layers.into_layers();
    Ok(verdict)
}
