//! The distributions of a round: those that the target model scored, the proposals of the drafter, and the target
//! distribution that combines them.

use crate::TokenId;
use crate::chance::RoundChance;
use crate::confidence::Confidence;
use crate::draft_tree::DraftTree;
use crate::noise::{InnerCall, Noise};
use crate::proposal::{BadProposal, Proposal, ProposalProbs};
use crate::real::Real;
use crate::target::{DraftProbs, Needs, TargetDistribution, TargetProbs};
use crate::verification::layers::{Horizon, ResidualLayer};
use crate::verification::{
    DraftChain, PositionDistributions, RoundDistributions, Verdict, Verification, verify,
};

/// The target model's distributions along a draft block.
pub trait TargetRows<F> {
    /// Why there are none.
    type Error: From<BadProposal>;

    /// The distributions after the first `offset` draft tokens. Asked for once each, in order; the row is
    /// then turned into the target distribution in place.
    ///
    /// # Errors
    /// If the model's row gives no distribution.
    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, F>, Self::Error>;

    /// The target distribution at a position made before (vocab).
    fn row(&self, offset: usize) -> &[F];
}

/// A draft block that is to be decided, and what came with it.
#[derive(Clone, Debug, Default)]
pub struct BlockInput {
    /// The draft tokens: a chain or a tree.
    pub drafts: DraftTree,
    /// What came of the draft model's distributions: at each draft token of a chain, or at each group of siblings of a
    /// tree; may be empty where nothing is needed.
    pub proposals: Vec<Proposal>,
    /// The same at the position after a chain.
    pub bonus: Option<Proposal>,
    /// How far drafting would have gone; greedy block verification.
    pub horizon: Horizon,
    /// Residual layers active before the block; greedy block verification.
    pub layers: Vec<ResidualLayer>,
}

/// What a round is made of, beside the target's rows.
#[derive(Clone, Copy, Debug)]
pub struct RoundInputs<'a> {
    /// What the request aims at.
    pub target: &'a TargetDistribution,
    /// Which verification asks.
    pub verification: Verification,
    /// Whether the request is at temperature 0.
    pub greedy: bool,
    /// The block, a chain.
    pub block: &'a BlockInput,
    /// Output tokens before it.
    pub base_len: u32,
    /// Tokens that end the output.
    pub ends: &'a [TokenId],
    /// Length of every distribution.
    pub vocab_size: usize,
}

/// Decides the block of `inputs` with the seeded noise of its request: what verifier and coordinator do alike, so
/// that it makes no difference who of them does it.
///
/// # Errors
/// If a row of logits yields no distribution, or a proposal of the draft model is malformed or missing.
pub fn decide<F: Real, R: TargetRows<F>>(
    inputs: RoundInputs<'_>,
    noise: Noise,
    rows: R,
    scratch: &mut RoundScratch<F>,
) -> Result<Verdict, R::Error> {
    let mut chance = RoundChance::new(noise, inputs.base_len, InnerCall::default());
    let chain = DraftChain {
        drafts: inputs.block.drafts.tokens(),
        base_len: inputs.base_len,
        ends: inputs.ends,
        horizon: inputs.block.horizon,
        layers: &inputs.block.layers,
    };
    let verification = inputs.verification;
    let mut round = ComputedRound::new(inputs, rows, scratch);
    let mut verdict = verify(verification, &chain, &noise, &mut chance, &mut round)?;
    let made = round.deferral();
    verdict.deferral = made[..made.len().min(verdict.emitted.len())].to_vec();
    Ok(verdict)
}

/// Rows that a round writes to, kept from round to round so that none is allocated anew.
#[derive(Clone, Debug, Default)]
pub struct RoundScratch<F> {
    draft: Vec<F>,
    unscaled: Vec<F>,
    deferral: Vec<f32>,
}

/// The distributions of one round, computed position by position when a verification reads them.
///
/// A target distribution that is a mixture applies at the position after the block too, so the draft
/// distribution is needed there, except where [`TargetDistribution::mixes_bonus`] is false.
///
/// The target's unscaled distribution comes with the first call for a position only. BiLD verification, which
/// reads it, asks for each position once; it goes with the exact target distribution.
#[derive(Debug)]
pub struct ComputedRound<'a, F, R> {
    inputs: RoundInputs<'a>,
    needs: Needs,
    rows: R,
    /// Positions made.
    made: usize,
    scratch: &'a mut RoundScratch<F>,
}

impl<'a, F: Real, R: TargetRows<F>> ComputedRound<'a, F, R> {
    /// The round of `inputs` on the target's `rows`.
    pub fn new(inputs: RoundInputs<'a>, rows: R, scratch: &'a mut RoundScratch<F>) -> Self {
        scratch.deferral.clear();
        Self {
            needs: inputs.target.needs(inputs.greedy),
            inputs,
            rows,
            made: 0,
            scratch,
        }
    }

    /// How much of each position made was deferred to the target, 0 to 1, in order; empty where the
    /// target distribution has no deferral.
    pub fn deferral(&self) -> &[f32] {
        &self.scratch.deferral
    }

    /// Whether π is p at `offset`.
    fn is_exact(&self, offset: usize) -> bool {
        let after_block = offset == self.inputs.block.drafts.len();
        let inputs = &self.inputs;
        inputs.target.is_exact() || after_block && !inputs.target.mixes_bonus(inputs.verification)
    }

    /// Returns the proposal at `offset`: the draft distribution as the drafter sent it. After the last draft token it is
    /// the one for the bonus position.
    ///
    /// # Errors
    /// If the drafter sent none there.
    fn proposal(&self, offset: usize) -> Result<&'a Proposal, BadProposal> {
        let block = self.inputs.block;
        if offset == block.drafts.len() {
            block.bonus.as_ref().ok_or(BadProposal::MissingBonus)
        } else {
            block.proposals.get(offset).ok_or(BadProposal::Missing)
        }
    }

    /// Whether a distribution came for the position after the block. A point distribution is none without its token.
    fn tells_bonus(&self) -> bool {
        let probs = self.inputs.block.bonus.as_ref().map(|bonus| &bonus.probs);
        probs.is_some_and(|probs| !matches!(probs, ProposalProbs::None | ProposalProbs::Point))
    }

    /// Writes the draft distribution at `offset` to its scratch row, or empties it where it is not needed.
    fn write_draft(&mut self, offset: usize) -> Result<(), BadProposal> {
        let verification = self.inputs.verification;
        let drafted = self.inputs.block.drafts.tokens().get(offset);
        let needed = !self.is_exact(offset)
            || match drafted {
                Some(_) => verification.reads_draft,
                // With live layers greedy block verification needs it, and then it was asked for.
                None => verification.carries_layers && self.tells_bonus(),
            };
        let proposal = needed.then(|| self.proposal(offset)).transpose()?;
        let probs = &mut self.scratch.draft;
        let Some(proposal) = proposal else {
            probs.clear();
            return Ok(());
        };
        // What stands there is written over.
        probs.resize(self.inputs.vocab_size, F::zero());
        match drafted {
            Some(&token) => proposal.probs.write_probs(token, probs),
            None if proposal.probs == ProposalProbs::None => Err(BadProposal::MissingBonus),
            None => proposal.probs.write(probs),
        }
    }

    /// The draft model's confidence at `offset`, as far as the target distribution reads it.
    fn confidence(&self, offset: usize) -> Result<Confidence<F>, BadProposal> {
        let mut confidence = Confidence::default();
        let reported = self.proposal(offset)?.confidence;
        if self.needs.max {
            let max = reported.ok_or(BadProposal::NotKept(MAX))?.max;
            if !(max > 0.0 && max <= 1.0) {
                return Err(BadProposal::OutOfRange(MAX));
            }
            confidence.max = F::from_f32(max);
        }
        if self.needs.entropy {
            let entropy = reported.ok_or(BadProposal::NotKept(ENTROPY))?.entropy;
            if !(entropy >= 0.0 && entropy.is_finite()) {
                return Err(BadProposal::OutOfRange(ENTROPY));
            }
            confidence.entropy = F::from_f32(entropy);
        }
        Ok(confidence)
    }

    /// Writes the draft model's unscaled distribution at `offset` to its scratch row; empties it where it is
    /// not needed or is the sampling distribution itself.
    fn write_unscaled(&mut self, offset: usize) -> Result<(), BadProposal> {
        let proposal = self.proposal(offset)?;
        let row = &mut self.scratch.unscaled;
        row.clear();
        if !self.needs.draft_unscaled {
            return Ok(());
        }
        let drafted = self.inputs.block.drafts.tokens().get(offset);
        let point = drafted.map(std::slice::from_ref);
        let ids = match &proposal.probs {
            ProposalProbs::Sparse { ids, .. } => Some(ids.as_slice()),
            ProposalProbs::Point => point,
            ProposalProbs::Dense(_) | ProposalProbs::None => None,
        };
        let reported = match (&proposal.unscaled, ids) {
            (Some(reported), _) if ids.is_none() || !self.needs.dense => reported,
            (None, None) => return Ok(()),
            _ => return Err(BadProposal::NotKept(UNSCALED)),
        };
        let expected = ids.map_or(self.inputs.vocab_size, <[_]>::len);
        if reported.len() != expected {
            let found = reported.len();
            return Err(BadProposal::Length { found, expected });
        }
        // NaN is in no range.
        if !reported.iter().all(|mass| (0.0..=1.0).contains(mass)) {
            return Err(BadProposal::OutOfRange(UNSCALED));
        }
        match ids {
            None => row.extend(reported.iter().map(|&mass| F::from_f32(mass))),
            Some(ids) => {
                row.resize(self.inputs.vocab_size, F::zero());
                for (&id, &mass) in ids.iter().zip(reported) {
                    row[id as usize] = F::from_f32(mass);
                }
            }
        }
        Ok(())
    }
}

const MAX: &str = "max_probability";
const ENTROPY: &str = "entropy";
const UNSCALED: &str = "unscaled";

impl<F: Real, R: TargetRows<F>> RoundDistributions<F> for ComputedRound<'_, F, R> {
    type Error = R::Error;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, F>, R::Error> {
        self.write_draft(offset)?;
        if offset < self.made {
            return Ok(PositionDistributions {
                target: self.rows.row(offset),
                target_unscaled: None,
                draft: &mut self.scratch.draft,
            });
        }
        debug_assert_eq!(offset, self.made, "positions come in order");
        let exact = self.is_exact(offset);
        let mut confidence = None;
        if !exact {
            confidence = Some(self.confidence(offset)?);
            self.write_unscaled(offset)?;
        }
        let target = self.rows.distributions(offset)?;
        if let Some(confidence) = confidence {
            let unscaled = self.scratch.unscaled.as_slice();
            let draft = DraftProbs {
                probs: &self.scratch.draft,
                unscaled: (!unscaled.is_empty()).then_some(unscaled),
                confidence,
            };
            let probs = TargetProbs {
                probs: &mut *target.probs,
                ..target
            };
            let deferral = self.inputs.target.apply(draft, probs, self.inputs.greedy);
            let single = |deferral: F| deferral.as_f64() as f32;
            self.scratch.deferral.extend(deferral.map(single));
        }
        self.made += 1;
        Ok(PositionDistributions {
            target: target.probs,
            target_unscaled: target.unscaled,
            draft: &mut self.scratch.draft,
        })
    }
}
