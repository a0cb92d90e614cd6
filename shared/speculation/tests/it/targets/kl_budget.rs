//! Lossy sampling within a budget of divergence: no distribution within the budget accepts more.

use speculation::target::{Beta, TargetDistribution};

use super::positions::positions;
use super::{acceptance, assert_close};
use crate::model::{Model, apply};
use crate::tree::Distributions;

const BUDGETS: [f64; 5] = [1e-4, 0.02, 0.1, 0.5, 3.0];

fn emitted(aim: TargetDistribution, q: &[f64], p: &[f64]) -> Vec<f64> {
    assert_eq!(aim.validate(), Ok(()));
    let (deferral, pi) = apply(aim, &Model::plain(q), &Model::plain(p), false);
    assert_eq!(deferral, None);
    pi
}

fn within(kl_budget: f64, q: &[f64], p: &[f64]) -> Vec<f64> {
    emitted(TargetDistribution::LossyWithin { kl_budget }, q, p)
}

/// KL(p ‖ out).
fn divergence(p: &[f64], out: &[f64]) -> f64 {
    let pairs = p.iter().zip(out).filter(|(p, _)| **p > 0.0);
    pairs.map(|(p, out)| p * (p / out).ln()).sum()
}

/// The distribution from `from` towards `to` as far as the budget allows.
fn towards(from: &[f64], to: &[f64], p: &[f64], budget: f64) -> Vec<f64> {
    let at = |share: f64| -> Vec<f64> {
        let pairs = from.iter().zip(to);
        pairs
            .map(|(from, to)| from * (1.0 - share) + to * share)
            .collect()
    };
    let (mut least, mut most) = (0.0, 1.0);
    if divergence(p, &at(1.0)) <= budget {
        return at(1.0);
    }
    for _ in 0..60 {
        let middle = f64::midpoint(least, most);
        if divergence(p, &at(middle)) <= budget {
            least = middle;
        } else {
            most = middle;
        }
    }
    at(least)
}

#[test]
fn what_comes_out_is_a_distribution_within_the_budget_and_spends_it() {
    let (mut spent, mut whole, mut limited) = (0, 0, 0);
    for at in positions() {
        let (q, p) = (&at.q.sampling, &at.p.sampling);
        for budget in BUDGETS {
            let out = within(budget, q, p);
            assert_close(&[out.iter().sum()], &[1.0], "mass");
            let found = divergence(p, &out);
            assert!(found < budget + 1e-9, "{found} of {budget}: {q:?} {p:?}");
            // Where more of the budget is left than rounding leaves, nothing more can be had for it: it is q itself, or
            // has all of q but the tokens that p never has.
            if found > budget - 1e-6 {
                spent += 1;
            } else if out == *q {
                whole += 1;
            } else {
                limited += 1;
                let possible = q.iter().zip(p).filter(|(_, p)| **p > 0.0);
                let possible: f64 = possible.map(|(q, _)| q).sum();
                assert_close(&[acceptance(q, &out)], &[possible], "all that can be");
            }
        }
    }
    assert!(spent > 1_000, "{spent}");
    assert!(whole > 1_000 && limited > 1_000, "{whole} {limited}");
}

/// `probs` without what the target never says; none if nothing is left.
fn possible(probs: &[f64], p: &[f64]) -> Option<Vec<f64>> {
    let pairs = probs.iter().zip(p);
    let kept: Vec<f64> = pairs
        .map(|(&mass, &p)| if p > 0.0 { mass } else { 0.0 })
        .collect();
    let total: f64 = kept.iter().sum();
    (total > 1e-9).then(|| kept.iter().map(|mass| mass / total).collect())
}

/// Of what the target may say. The acceptance is concave and the budget's set convex, so a step in any direction
/// would find a better one.
#[test]
fn no_distribution_within_the_budget_accepts_more() {
    for (seed, at) in positions().into_iter().enumerate() {
        let (q, p) = (&at.q.sampling, &at.p.sampling);
        for budget in BUDGETS {
            let out = within(budget, q, p);
            let accepted = acceptance(q, &out);
            let random = Distributions::random(seed as u64, q.len()).after(&[]);
            let tuned = TargetDistribution::Lossy {
                alpha: 0.4,
                beta: Beta::Tuned,
            };
            for other in [q, p, &random, &emitted(tuned, q, p)] {
                let Some(other) = possible(other, p) else {
                    continue;
                };
                for from in [&out, p] {
                    let rival = acceptance(q, &towards(from, &other, p, budget));
                    assert!(rival < accepted + 1e-9, "{rival} {accepted} {q:?} {p:?}");
                }
            }
        }
    }
}

/// It is lossy sampling: of the α with the same acceptance, and tuned β.
#[test]
fn it_is_lossy_sampling_with_the_alpha_that_spends_the_budget() {
    let mut compared = 0;
    for at in positions() {
        let (q, p) = (&at.q.sampling, &at.p.sampling);
        for alpha in [0.05, 0.3, 0.6, 0.9] {
            let beta = Beta::Tuned;
            let expected = emitted(TargetDistribution::Lossy { alpha, beta }, q, p);
            let budget = divergence(p, &expected);
            let is_within = (1e-6..=100.0).contains(&budget);
            if !is_within || acceptance(q, &expected) > 1.0 - 1e-9 {
                continue;
            }
            compared += 1;
            let out = within(budget, q, p);
            for (out, expected) in out.iter().zip(&expected) {
                assert!((out - expected).abs() < 1e-7, "{out} {expected} at {alpha}");
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn a_larger_budget_never_accepts_less_and_none_leaves_the_target_bit_for_bit() {
    for at in positions() {
        let (q, p) = (&at.q.sampling, &at.p.sampling);
        assert_eq!(&within(0.0, q, p), p);
        let accepted = BUDGETS.map(|budget| acceptance(q, &within(budget, q, p)));
        assert!(accepted[0] > acceptance(q, p) - 1e-9);
        assert!(accepted.windows(2).all(|pair| pair[1] > pair[0] - 1e-12));
        if at.equal {
            assert_eq!(&within(0.1, q, p), q);
        }
    }
}
