//! Two small models whose probabilities single precision holds exactly, and their recordings.

use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::philox::philox;

use crate::recording::{RecordedBlock, WholeProbs, cut};

pub(super) const VOCAB: usize = 4;

/// Multiples of 1/64 that add up to 1, drawn by `seed` for each context; some of them 0.
#[derive(Clone, Copy)]
pub(super) struct Model {
    seed: u32,
    vocab: usize,
}

/// Both distributions of a model at one position.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) probs: Vec<f64>,
    pub(super) unscaled: Vec<f64>,
}

impl Said {
    pub(super) fn max(&self) -> f64 {
        self.unscaled.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn entropy(&self) -> f64 {
        let terms = self.unscaled.iter().filter(|mass| **mass > 0.0);
        -terms.map(|mass| mass * mass.ln()).sum::<f64>()
    }
}

impl Model {
    pub(super) fn new(seed: u32, vocab: usize) -> Self {
        Self { seed, vocab }
    }

    /// What it says after `context`. The unscaled distribution is another one.
    pub(super) fn after(self, context: &[TokenId]) -> Said {
        Said {
            probs: self.drawn(context, 1),
            unscaled: self.drawn(context, 2),
        }
    }

    fn drawn(self, context: &[TokenId], which: u32) -> Vec<f64> {
        let context = context.iter().fold(1, |hash, &token| hash * 7 + token + 1);
        let mut counts = vec![0_u32; self.vocab];
        // Uneven: a token's share of the counts is a draw, too.
        let lean = |token: u32| philox([token, context, which, 9], [self.seed, 1])[0] >> 29;
        let weights: Vec<u32> = (0..self.vocab as u32).map(lean).collect();
        let total: u32 = weights.iter().sum::<u32>().max(1);
        for count in 0..64 {
            let mut at = philox([count, context, which, 7], [self.seed, 0])[0] % total;
            let token = weights.iter().position(|&weight| {
                let here = at < weight;
                at = at.wrapping_sub(if here { 0 } else { weight });
                here
            });
            counts[token.unwrap_or(0)] += 1;
        }
        counts
            .iter()
            .map(|&count| f64::from(count) / 64.0)
            .collect()
    }
}

/// The recording of `drafts` after nothing, on the `top` most likely tokens (0: all).
pub(super) fn recorded(
    draft: Model,
    target: Model,
    drafts: &[TokenId],
    top: usize,
) -> RecordedBlock {
    let single = |row: &[f64]| row.iter().map(|&mass| mass as f32).collect::<Vec<_>>();
    let positions = (0..drafts.len()).map(|at| {
        let said = [draft, target].map(|model| model.after(&drafts[..at]));
        let distributions = said.each_ref().map(|said| single(&said.probs));
        let unscaled = said.each_ref().map(|said| single(&said.unscaled));
        let whole = |which: usize| WholeProbs {
            probs: &distributions[which],
            unscaled: Some(&unscaled[which]),
            confidence: Confidence {
                max: said[which].max() as f32,
                entropy: said[which].entropy() as f32,
            },
        };
        cut(whole(0), whole(1), drafts[at], top)
    });
    let block = RecordedBlock {
        drafts: drafts.to_vec(),
        positions: positions.collect(),
        ..RecordedBlock::default()
    };
    let checked = block.check(draft.vocab as u32, true);
    assert_eq!(checked, Ok(()));
    block
}

/// Every block of `len` draft tokens that the draft model can draw, and its probability.
pub(super) fn paths(draft: Model, len: usize) -> Vec<(Vec<TokenId>, f64)> {
    let mut paths = vec![(Vec::new(), 1.0)];
    for _ in 0..len {
        let longer = paths.iter().flat_map(|(path, probability)| {
            let probs = draft.after(path).probs.into_iter().enumerate();
            let possible = probs.filter(|&(_, mass)| mass > 0.0);
            possible.map(move |(token, mass)| {
                let path: Vec<TokenId> = [&path[..], &[token as TokenId]].concat();
                (path, probability * mass)
            })
        });
        paths = longer.collect();
    }
    paths
}
