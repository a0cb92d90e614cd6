//! How many tokens each verification accepts, what keys its draws, and which laws it asks for.

mod draws;
mod lengths;
mod refusals;

use crate::tree::{Pair, Setup};
use speculation::TokenId;
use speculation::proposal::ProposalForm;
use speculation::target::TargetDistribution;
use speculation::verification::{Block, Verification};

const WHOLE: ProposalForm = ProposalForm::Sparse { top: 8 };
const VERIFICATIONS: [Verification; 3] = [
    Verification::Token,
    Verification::Block,
    Verification::BlockGreedy,
];

fn setup(pair: &Pair, verification: Verification, length: fn(u32) -> u32) -> Setup<'_> {
    Setup {
        draft: &pair.draft,
        target: &pair.target,
        verification,
        form: WHOLE,
        distribution: &TargetDistribution::Exact,
        ends: &[],
        temperature: 1.0,
        length,
    }
}

fn block_of(drafts: &[TokenId], base_len: u32) -> Block<'_> {
    Block {
        drafts,
        base_len,
        ends: &[],
        horizon: drafts.len() as u32,
        layers: &[],
    }
}
