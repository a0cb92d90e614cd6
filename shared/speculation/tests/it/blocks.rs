//! How many tokens each verification accepts, what keys its draws, and which distributions it reads.

mod draws;
mod lengths;
mod refusals;

use crate::tree::{Pair, Setup};
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::noise::{InnerCall, Noise};
use speculation::proposal::{BadProposal, ProposalForm};
use speculation::real::Real;
use speculation::target::TargetDistribution;
use speculation::verification::{DraftChain, RoundDistributions, Verdict, Verification, verify};

pub(crate) const WHOLE: ProposalForm = ProposalForm::Sparse { top: 8 };
pub(crate) const VERIFICATIONS: [Verification; 3] = [
    Verification::TOKEN,
    Verification::BLOCK,
    Verification::BLOCK_GREEDY,
];

pub(crate) fn setup(pair: &Pair, verification: Verification, length: fn(u32) -> u32) -> Setup<'_> {
    Setup {
        draft: &pair.draft,
        target: &pair.target,
        verification,
        form: WHOLE,
        distribution: &TargetDistribution::Exact,
        ends: &[],
        temperature: 1.0,
        length,
        stops: |_| false,
    }
}

pub(crate) fn block_of(drafts: &[TokenId], base_len: u32) -> DraftChain<'_> {
    DraftChain {
        drafts,
        base_len,
        ends: &[],
        horizon: (drafts.len() as u32).into(),
        layers: &[],
    }
}

/// The verdict on `block`, decided by seeded noise.
pub(crate) fn seeded<F: Real>(
    verification: Verification,
    block: &DraftChain<'_>,
    noise: Noise,
    mut distributions: impl RoundDistributions<F, Error = BadProposal>,
) -> Result<Verdict, BadProposal> {
    let mut chance = RoundChance::new(noise, block.base_len, InnerCall::default());
    verify(verification, block, &noise, &mut chance, &mut distributions)
}
