//! Blocks against reference values computed apart: accept probabilities, distributions of the length, distributions of
//! the next token, traces, and whole rounds, in double and in single precision.

mod drafts;
mod lengths;
mod mixture;
mod rounds;
mod traces;

use crate::blocks::block_of;
use crate::read::Tree;
use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::Noise;
use speculation::proposal::BadProposal;
use speculation::real::Real;
use speculation::verification::layers::ResidualLayer;
use speculation::verification::{DraftChain, RoundDistributions, Verdict, Verification, verify};

/// The names of the files' methods.
const METHODS: [(&str, Verification); 3] = [
    ("token", Verification::TOKEN),
    ("iclr", Verification::BLOCK),
    ("v1", Verification::BLOCK_GREEDY),
];

fn decide<F: Real, L: RoundDistributions<F, Error = BadProposal>>(
    verification: Verification,
    drafts: &[TokenId],
    layers: &[ResidualLayer],
    ends: &[TokenId],
    chance: &mut impl Chance<F>,
    distributions: &mut L,
) -> Verdict {
    let block = DraftChain {
        ends,
        layers,
        ..block_of(drafts, 0)
    };
    verify(
        verification,
        &block,
        &Noise::new(0, 0),
        chance,
        distributions,
    )
    .expect("well-formed distributions")
}

/// The distributions after each prefix of `draft`.
fn along<F: Real>(tree: &Tree, draft: &[TokenId]) -> Vec<Vec<F>> {
    (0..=draft.len())
        .map(|at| tree.probs(&draft[..at]))
        .collect()
}

fn mean(probs: &[f64]) -> f64 {
    probs
        .iter()
        .enumerate()
        .map(|(length, mass)| length as f64 * mass)
        .sum()
}
