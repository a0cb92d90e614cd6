//! What cascades are worth: the state machine against a Markov chain of its reviews.

use std::sync::Arc;

use super::every_k;
use crate::tree::{Branch, enumerate};
use speculation::cascade::ewif::expected;
use speculation::cascade::{
    BlockLimits, CallNoise, Cascade, CascadeConfig, CascadeStep, DraftDistributions, DraftRows,
    Emitter, Grams, Reviewing,
};
use speculation::chance::Chance;
use speculation::max_gram::{Bigram, MaxGram};
use speculation::proposal::BadProposal;

/// Rows of a reviewer at temperature 0 that agrees with a draft token with a given probability.
struct Agreeing<'a> {
    branch: &'a mut Branch,
    acceptance: &'a [f64],
    emitters: Vec<usize>,
    tokens: Vec<u32>,
    draws: &'a mut u32,
    row: Vec<f64>,
}

impl DraftRows<f64> for Agreeing<'_> {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<DraftDistributions<'_, f64>, BadProposal> {
        let mut token = 0;
        if let Some(&emitter) = self.emitters.get(offset) {
            *self.draws += 1;
            let agrees = self.branch.accepts(*self.draws, self.acceptance[emitter]);
            token = if agrees {
                self.tokens[offset]
            } else {
                1 - self.tokens[offset]
            };
        }
        self.row = vec![0.0; 2];
        self.row[token as usize] = 1.0;
        Ok(DraftDistributions {
            probs: &mut self.row,
            unscaled: None,
        })
    }
}

/// The chain against the shipped state machine, every outcome of every review taken with its
/// probability, for all small matrices.
#[test]
fn the_chain_is_what_the_state_machine_does() {
    let acceptance = vec![
        vec![0.8, 0.6, 0.3],
        vec![0.0, 0.7, 0.4],
        vec![0.0, 0.0, 0.5],
    ];
    let mut found = 0;
    for k in every_k(3, 1).into_iter().chain([
        vec![vec![1, 1, 2], vec![0, 2, 0], vec![0, 0, 1]],
        vec![vec![2, 0, 1], vec![0, 1, 1], vec![0, 0, 2]],
    ]) {
        let config = CascadeConfig::new(3, true, k, 1.0, 2).expect("a cascade");
        let chain = expected(&config, &acceptance);
        let config = Arc::new(config);
        let (mut tokens, mut calls) = (0.0, vec![0.0; 3]);
        enumerate(|branch| {
            let (emitters, made) = drafted(&config, &acceptance, branch);
            let mut standing = 1.0;
            let mut emitted = 1.0;
            for emitter in emitters {
                standing *= acceptance[0][emitter];
                emitted += standing;
            }
            tokens += branch.weight() * emitted;
            for (sum, made) in calls.iter_mut().zip(made) {
                *sum += branch.weight() * f64::from(made);
            }
        });
        assert!(
            (chain.tokens - tokens).abs() < 1e-12,
            "{config:?}: {tokens}"
        );
        for (one, other) in chain.calls.iter().zip(&calls) {
            assert!((one - other).abs() < 1e-12, "{config:?}: {calls:?}");
        }
        found += 1;
    }
    assert!(found > 20, "{found}");
}

/// Emitters of a draft block, as columns of K, and the calls made for it.
fn drafted(
    config: &Arc<CascadeConfig>,
    acceptance: &[Vec<f64>],
    branch: &mut Branch,
) -> (Vec<usize>, Vec<u32>) {
    let block = BlockLimits {
        max_tokens: 100,
        ..Default::default()
    };
    let reviewing = Reviewing::<CallNoise>::Greedy;
    let mut cascade = Cascade::new(config.clone(), reviewing, block).expect("a cascade");
    let mut index = MaxGram::new(&[]);
    let bigram = Bigram::new(vec![1, 0]).expect("a table");
    let mut draws = 0;
    loop {
        let grams = Grams {
            index: &mut index,
            bigram: &bigram,
        };
        let CascadeStep::Score { level, .. } = cascade.next(Some(grams)) else {
            break;
        };
        let mut rows = Agreeing {
            branch: &mut *branch,
            acceptance: &acceptance[level],
            emitters: cascade.emitters().map(column).collect(),
            tokens: cascade.tokens().to_vec(),
            draws: &mut draws,
            row: Vec::new(),
        };
        cascade.supply(&mut rows, |_, _| ()).expect("rows");
    }
    (
        cascade.emitters().map(column).collect(),
        cascade.calls().to_vec(),
    )
}

/// The column of K that is the emitter's.
fn column(emitter: Emitter) -> usize {
    match emitter {
        Emitter::MaxGram => 2,
        Emitter::Model(level) => level - 1,
    }
}
