//! The distribution emitted, by enumeration: of a race with arrival times E_j/w_j every winner is taken, with its
//! probability w_j/Σw, and the rest of the noise on a grid. Given the winner and the time t of its arrival, which is
//! exponential with mean 1/Σw whoever wins, the E of another token is w t and what is exponential with mean 1 on
//! top. If what is emitted does not depend on the rest, each winner is emitted with its probability.

use std::collections::BTreeMap;

use speculation::TokenId;
use speculation::certificate::{NoiseRanking, PartialDistribution, PartialRow};
use speculation::sampling::SamplingParams;
use speculation::verification::residual::residual;

use super::case::{Case, POSITION};
use super::ties::Table;

/// Exponential variables of mean 1: the middles of this many equal parts, and one far out on either side.
const TIMES: usize = 5;
const OTHERS: usize = 4;

fn exponentials(parts: usize) -> Vec<f64> {
    let middle = |part: usize| -((part as f64 + 0.5) / parts as f64).ln();
    (0..parts).map(middle).chain([1e-9, 12.0]).collect()
}

/// Every winner of the race between tokens of `weights`, on the grid: its probability and the uniforms.
fn races(weights: &[f64]) -> Vec<(f64, Table)> {
    let total: f64 = weights.iter().sum();
    let others = exponentials(OTHERS);
    let combinations = others.len().pow(weights.len() as u32 - 1);
    let times = exponentials(TIMES);
    let mut found = Vec::new();
    for (winner, weight) in weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight > 0.0)
    {
        for time in &times {
            for mut combination in 0..combinations {
                let arrivals = weights.iter().enumerate().map(|(token, weight)| {
                    let at_once = weight / total * time;
                    if token == winner {
                        return at_once;
                    }
                    let more = others[combination % others.len()];
                    combination /= others.len();
                    at_once + more
                });
                let uniforms = arrivals.map(|e| (-e).exp().min(1.0_f64.next_down()));
                let cells = (times.len() * combinations) as f64;
                found.push((weight / total / cells, Table(uniforms.collect())));
            }
        }
    }
    found
}

/// Returns what is emitted where a part of the row that proves nothing is followed by the whole, and whether the part
/// was enough.
fn emitted(
    case: &Case,
    asking: (usize, usize),
    ranking: &NoiseRanking<Table>,
    decide: impl Fn(&PartialDistribution<'_>) -> Option<TokenId>,
) -> (TokenId, bool) {
    let decided = |row: PartialRow| {
        let law = PartialDistribution::of(&row, &case.params, &case.history, POSITION);
        decide(&law.expect("a distribution"))
    };
    match decided(case.part(asking, ranking, 1)) {
        Some(token) => (token, true),
        None => (decided(case.whole()).expect("of a whole row"), false),
    }
}

/// Cases of few tokens that may all be drawn or not, at a temperature above 0.
fn cases() -> Vec<Case> {
    (0..)
        .map(|number| Case::new(1_000_000 + number, 4))
        .filter(|case| case.params.temperature > 0.0 && case.probs().is_some())
        .take(60)
        .collect()
}

fn assert_near(emitted: &BTreeMap<TokenId, f64>, probs: &[f64], params: &SamplingParams) {
    for (token, &probability) in probs.iter().enumerate() {
        let mass = emitted
            .get(&(token as TokenId))
            .copied()
            .unwrap_or_default();
        let off = (mass - probability).abs();
        assert!(off < 1e-12, "{emitted:?} is not {probs:?}: {params:?}");
    }
}

#[test]
fn choices_emit_the_target_distribution() {
    let mut proofs = [0_u32; 2];
    for case in cases() {
        let probs = case.probs().expect("a distribution");
        for (top, noise) in [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 1)] {
            let top = top.min(case.vocab());
            let mut masses = BTreeMap::new();
            for (probability, table) in races(&probs) {
                let ranking = NoiseRanking::new(table, case.vocab(), case.vocab());
                let (token, proved) =
                    emitted(&case, (top, noise), &ranking, |law| law.choice(&ranking));
                *masses.entry(token).or_insert(0.0) += probability;
                proofs[usize::from(proved)] += 1;
            }
            assert_near(&masses, &probs, &case.params);
        }
    }
    assert!(
        proofs[0] * 20 > proofs[1] && proofs[1] * 20 > proofs[0],
        "{proofs:?}"
    );
}

/// Every draft token with its probability, every part of the accept test's uniform with its length, every winner of the
/// residual's race.
#[test]
fn tested_draft_tokens_and_residuals_emit_the_target_distribution() {
    let mut proofs = [0_u32; 2];
    for case in cases() {
        let probs = case.probs().expect("a distribution");
        let mut excess = vec![0.0; case.vocab()];
        for &(token, mass) in &case.draft {
            excess[token as usize] = mass;
        }
        residual(0.0, &probs, &mut excess);
        for (top, noise) in [(0, 0), (1, 0), (1, 1), (2, 1), (3, 0)] {
            let top = top.min(case.vocab());
            let mut masses = BTreeMap::new();
            for &(token, draft_prob) in &case.draft {
                let ratio = (probs[token as usize] / draft_prob).min(1.0);
                let ends = [
                    0.0,
                    ratio * (1.0 - 1e-7),
                    ratio,
                    ratio + (1.0 - ratio) * 1e-7,
                    1.0,
                ];
                for part in ends.windows(2).filter(|part| part[0] < part[1]) {
                    let (reached, eta) = (
                        draft_prob * (part[1] - part[0]),
                        f64::midpoint(part[0], part[1]),
                    );
                    let none = NoiseRanking::new(Table(vec![0.5; case.vocab()]), case.vocab(), 0);
                    let accepts = |row: PartialRow| {
                        let law =
                            PartialDistribution::of(&row, &case.params, &case.history, POSITION);
                        let law = law.expect("a distribution");
                        law.accepts(token, draft_prob, eta).expect("known")
                    };
                    let tested = accepts(case.part((top, 0), &none, 1));
                    if tested
                        .or_else(|| accepts(case.whole()))
                        .expect("of a whole row")
                    {
                        *masses.entry(token).or_insert(0.0) += reached;
                        continue;
                    }
                    for (probability, table) in races(&excess) {
                        let ranking = NoiseRanking::new(table, case.vocab(), case.vocab());
                        let redraw = |law: &PartialDistribution<'_>| {
                            law.residual(&case.draft, &ranking).expect("known")
                        };
                        let (token, proved) = emitted(&case, (top, noise), &ranking, redraw);
                        *masses.entry(token).or_insert(0.0) += reached * probability;
                        proofs[usize::from(proved)] += 1;
                    }
                }
            }
            assert_near(&masses, &probs, &case.params);
        }
    }
    assert!(
        proofs[0] * 20 > proofs[1] && proofs[1] * 20 > proofs[0],
        "{proofs:?}"
    );
}
