//! How a draft block is accepted.
//!
//! | verification | keeps | output |
//! |---|---|---|
//! | [`coupled`] | draft tokens that are the verifier's own choice | the seeded sample of π, whatever was drafted |
//! | [`tree`] | in a tree of draft tokens, the path of the verifier's own choices | as coupled |
//! | [`token`] | each draft token with probability `min(1, π/q)` | exact in distribution |
//! | [`tree_rejection`] | in a tree, of each group of siblings the first that passes its test | as token |
//! | [`block`] | the longest prefix whose joint test passes | exact in distribution |
//! | [`block_greedy`] | the most a block can | exact in distribution, the residual carried on in [`layers`] |
//! | [`bild`] | draft tokens that the target does not find too unlikely | the original BiLD |
//!
//! Each is a line of [`VERIFICATIONS`]. [`verify`] is the one way in.

pub mod bild;
pub mod block;
pub mod block_greedy;
pub mod coupled;
pub mod layers;
pub mod residual;
mod table;
pub mod token;
pub mod tree;
pub mod tree_rejection;

use self::table::Procedure;
pub use self::table::{AcceptanceLabel, Draws, UnknownLabel, VERIFICATIONS, Verification};
use crate::TokenId;
use crate::chance::Chance;
use crate::noise::Noise;
use crate::proposal::BadProposal;
use crate::real::Real;
use crate::verification::layers::{Horizon, ResidualLayer};

/// What the last emitted token of a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastToken {
    /// It replaces the first draft token that was not accepted.
    Recovered,
    /// All draft tokens were accepted, and the target added one.
    Bonus,
    /// It is an accepted draft token that ends the output; nothing comes after it.
    AcceptedEnd,
}

/// What a round decides about.
#[derive(Clone, Copy, Debug)]
pub struct DraftChain<'a> {
    /// The chain of draft tokens; none asks for one token of the target distribution.
    pub drafts: &'a [TokenId],
    /// Output tokens before them.
    pub base_len: u32,
    /// Tokens that end the output.
    pub ends: &'a [TokenId],
    /// How far drafting would have gone; greedy block verification.
    pub horizon: Horizon,
    /// Residual layers active at `base_len`; greedy block verification.
    pub layers: &'a [ResidualLayer],
}

/// The outcome of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The tokens emitted: the accepted draft tokens, then what [`Verdict::last`] says.
    pub emitted: Vec<TokenId>,
    /// The draft tokens among them, as nodes of the block, root first.
    pub path: Vec<u32>,
    /// What the last emitted token is.
    pub last: LastToken,
    /// For each emitted position, how much of it was deferred to the target; empty where the
    /// target distribution has no deferral.
    pub deferral: Vec<f32>,
    /// Residual layers active after the emitted tokens, oldest first; greedy block verification only.
    pub layers: Vec<ResidualLayer>,
}

/// The distributions at one position of a round.
#[derive(Debug)]
pub struct PositionDistributions<'a, F> {
    /// The target distribution π (vocab).
    pub target: &'a [F],
    /// The target model's unscaled distribution (vocab); none if it is `target` itself.
    pub target_unscaled: Option<&'a [F]>,
    /// The distribution the draft token was drawn from (vocab), in a scratch row that may be overwritten.
    /// Empty where nothing was told of it.
    pub draft: &'a mut [F],
}

/// The distributions of a round, made position by position as they are needed.
pub trait RoundDistributions<F> {
    /// Why there are none.
    type Error: From<BadProposal>;

    /// The distributions after the first `offset` draft tokens, 0 to their number. First calls come in order
    /// of `offset`; a position seen before may be asked for again and gives the same distributions.
    ///
    /// # Errors
    /// If a model's row or what came of the draft distribution is malformed.
    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, F>, Self::Error>;
}

/// Decides `block` by `verification`.
///
/// `noise` serves coupled choices, `chance` the accept tests and draws of the others; `distributions` gives
/// the distributions of the round. Coupled, token and BiLD verification ask for no distribution beyond the first
/// refusal.
///
/// # Errors
/// Whatever `distributions` fails with, and a [`BadProposal`] where a draft distribution is needed and missing or
/// gives its own token no mass: that is the drafter's fault and never reaches a result.
pub fn verify<F: Real, L: RoundDistributions<F>>(
    verification: Verification,
    block: &DraftChain<'_>,
    noise: &Noise,
    chance: &mut impl Chance<F>,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    match verification.procedure {
        Procedure::Coupled => coupled::verify(block, noise, distributions),
        Procedure::Token => token::verify(block, chance, distributions),
        Procedure::Block => block::verify(block, chance, distributions),
        Procedure::BlockGreedy => block_greedy::verify(block, chance, distributions),
        Procedure::Bild { keeps_repeated } => {
            let rule = bild::Rollback {
                threshold: verification.rollback(),
                keeps_repeated,
            };
            bild::verify(block, rule, noise, distributions)
        }
    }
}

impl<'a> DraftChain<'a> {
    /// The draft tokens up to the first that ends the output, and whether there is one.
    fn until_end(&self) -> (&'a [TokenId], bool) {
        let end = self
            .drafts
            .iter()
            .position(|draft| self.ends.contains(draft));
        match end {
            Some(at) => (&self.drafts[..=at], true),
            None => (self.drafts, false),
        }
    }
}

impl<F: Real> PositionDistributions<'_, F> {
    /// Returns q(token), the probability the draft token was drawn with.
    ///
    /// # Errors
    /// If it is not told, or 0.
    pub fn drawn_with(&self, token: TokenId) -> Result<F, BadProposal> {
        let mass = *self.draft.get(token as usize).ok_or(BadProposal::Missing)?;
        if mass > F::zero() {
            Ok(mass)
        } else {
            Err(BadProposal::TokenWithoutMass(token))
        }
    }

    /// `ln π(token) - ln q(token)`; negative infinity where the target gives the token no mass.
    fn log_ratio(&self, token: TokenId) -> Result<f64, BadProposal> {
        let drawn_with = self.drawn_with(token)?;
        Ok(log_ratio(self.target[token as usize], drawn_with))
    }
}

/// `ln π - ln q` for q > 0. Exactly 0 for equal masses.
fn log_ratio<F: Real>(target: F, draft: F) -> f64 {
    target.as_f64().ln_portable() - draft.as_f64().ln_portable()
}

impl Verdict {
    /// Number of draft tokens accepted.
    pub fn accepted(&self) -> usize {
        self.path.len()
    }

    /// All of `accepted` draft tokens of a chain stand, the last of them ending the output.
    fn ended(accepted: &[TokenId]) -> Self {
        Self::of_chain(accepted, None, LastToken::AcceptedEnd)
    }

    /// The draft tokens `accepted` of a chain stand, followed by the target's `token`.
    fn with_last(accepted: &[TokenId], token: TokenId, last: LastToken) -> Self {
        Self::of_chain(accepted, Some(token), last)
    }

    fn of_chain(accepted: &[TokenId], added: Option<TokenId>, last: LastToken) -> Self {
        let emitted = accepted.iter().copied().chain(added).collect();
        Self::new(emitted, (0..accepted.len() as u32).collect(), last)
    }

    /// The verdict without deferral and without residual layers.
    pub(crate) fn new(emitted: Vec<TokenId>, path: Vec<u32>, last: LastToken) -> Self {
        Self {
            emitted,
            path,
            last,
            deferral: Vec::new(),
            layers: Vec::new(),
        }
    }
}
