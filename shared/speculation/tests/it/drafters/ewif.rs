//! What cascades are worth: the paper's table, and the formulas against the state machine itself.

mod formulas;

use std::sync::Arc;

use super::{config, every_k};
use crate::tree::{Branch, enumerate};
use speculation::cascade::{
    CallNoise, Cascade, CascadeConfig, DraftBlock, DraftLaws, DraftRows, Emitter, Grams, Next,
    Reviewing,
};
use speculation::chance::Chance;
use speculation::max_gram::{Bigram, MaxGram};
use speculation::proposal::BadProposal;

use formulas::{expected, generating, horizontal, speculative, vertical};

/// The paper's Table 1, at the acceptance of the small and the base model and the costs that are known to
/// reproduce it. The figures on the right were written down from memory and not compared with the print:
/// this holds the formulas fast, it is no evidence of what the paper says.
#[test]
fn the_simulated_table_comes_out() {
    let (small, base) = (0.0069, 0.022);
    let close = |found: f64, printed: f64| {
        assert!((found - printed).abs() < 0.006, "{found} is not {printed}");
    };
    close(speculative(0.65, 9, small), 2.65);
    close(speculative(0.73, 8, base), 2.96);
    close(horizontal(&[(0.73, 5, base), (0.65, 3, small)]), 3.03);
    close(speculative(0.75, 12, small), 3.61);
    close(speculative(0.80, 11, base), 3.75);
    close(horizontal(&[(0.80, 5, base), (0.75, 8, small)]), 3.93);
}

/// The lengths of the table are the best ones.
#[test]
fn the_lengths_of_the_table_are_the_best() {
    let best = |acceptance: f64, cost: f64| {
        let worth = |&len: &u32| (speculative(acceptance, len, cost) * 1e9) as u64;
        (0..40).max_by_key(worth)
    };
    for (acceptance, cost, len) in [
        (0.65, 0.0069, 9),
        (0.73, 0.022, 8),
        (0.75, 0.0069, 12),
        (0.80, 0.022, 11),
    ] {
        assert_eq!(best(acceptance, cost), Some(len));
    }
}

/// `φ` is the mean of `x^N` over the tokens N that a review emits.
#[test]
fn the_generating_function_is_that_of_a_review() {
    for (a, k) in [(0.0, 3), (0.3, 0), (0.65, 5), (1.0, 4)] {
        for x in [0.0, 0.4, 1.0, 1.0 / 0.65] {
            let refused: f64 = (0..k)
                .map(|kept: u32| {
                    f64::powi(a, kept as i32) * (1.0 - a) * f64::powi(x, kept as i32 + 1)
                })
                .sum();
            let mean = refused + f64::powi(a, k as i32) * f64::powi(x, k as i32 + 1);
            assert!((generating(a, k, x) - mean).abs() < 1e-12);
        }
    }
}

/// The vertical formula is the chain's expectation, where quotas let the first draft be called just
/// so often: each of its calls gives at least one token, so a quota of 1 is one call.
#[test]
fn the_formulas_are_the_expectation_of_the_chain() {
    let (outer, inner, costs) = (0.7, 0.6, (0.1, 0.02));
    for draft_len in 0..5 {
        let config = config(&[&[1, 0], &[0, draft_len]], false, 1.0, 1);
        let chain = expected(&config, &[vec![outer, 0.0], vec![0.0, inner]]);
        let found = chain.ewif(&[costs.0, costs.1]);
        let formula = vertical(outer, 1, (inner, draft_len), costs);
        assert!((found - formula).abs() < 1e-12, "{found} is not {formula}");
    }
    let config = config(&[&[5, 3], &[0, 0]], false, 1.0, 1);
    let chain = expected(&config, &[vec![0.73, 0.65], vec![0.0, 0.0]]);
    let formula = horizontal(&[(0.73, 5, 0.022), (0.65, 3, 0.0069)]);
    assert!((chain.ewif(&[0.022, 0.0069]) - formula).abs() < 1e-12);
}

/// More than one review: the drafted tokens are those of `reviews` independent reviews.
#[test]
fn the_vertical_formula_is_the_mean_over_independent_reviews() {
    for outer in [0.0, 0.7, 1.0] {
        let (inner, draft_len, costs) = (0.6_f64, 3, (0.1, 0.02));
        // The law of the tokens that one review emits.
        let one: Vec<f64> = (0..=draft_len)
            .map(|kept| inner.powi(kept) * if kept < draft_len { 1.0 - inner } else { 1.0 })
            .collect();
        let mut drafted = vec![1.0];
        for reviews in 1..5_u32 {
            let mut more = vec![0.0; drafted.len() + one.len()];
            for (tokens, chance) in drafted.iter().enumerate() {
                for (kept, each) in one.iter().enumerate() {
                    more[tokens + kept + 1] += chance * each;
                }
            }
            drafted = more;
            let powers = |len: usize| (0..=len).map(|power| f64::powi(outer, power as i32));
            let mean: f64 = (drafted.iter().enumerate())
                .map(|(len, chance)| chance * powers(len).sum::<f64>())
                .sum();
            let cost = 1.0 + f64::from(reviews) * (costs.0 + 3.0 * costs.1);
            let formula = vertical(outer, reviews, (inner, 3), costs);
            assert!((formula - mean / cost).abs() < 1e-12, "{formula} {reviews}");
        }
    }
}

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

    fn laws(&mut self, offset: usize) -> Result<DraftLaws<'_, f64>, BadProposal> {
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
        Ok(DraftLaws {
            law: &mut self.row,
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
    let block = DraftBlock {
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
        let Next::Score { level, .. } = cascade.next(Some(grams)) else {
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
