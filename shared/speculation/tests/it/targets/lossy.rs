//! Lossy speculative sampling: what comes out is what its procedure emits, for every β.

use speculation::target::{Beta, TargetDistribution, tuned_beta};

use super::positions::positions;
use super::{acceptance, assert_close, total_variation};
use crate::model::{Model, apply};

const ALPHAS: [f64; 6] = [0.0, 0.05, 0.3, 0.6, 0.9, 0.999];

/// All pairs of sampling distributions.
fn distributions() -> Vec<(Vec<f64>, Vec<f64>)> {
    let positions = positions().into_iter();
    positions.map(|at| (at.q.sampling, at.p.sampling)).collect()
}

fn emitted(alpha: f64, beta: Beta, q: &[f64], p: &[f64]) -> Vec<f64> {
    let aim = TargetDistribution::Lossy { alpha, beta };
    assert_eq!(aim.validate(), Ok(()));
    let (deferral, pi) = apply(aim, &Model::plain(q), &Model::plain(p), false);
    assert_eq!(deferral, None);
    pi
}

/// Σ (q - p/(1 - α))_+.
fn refused(alpha: f64, q: &[f64], p: &[f64]) -> f64 {
    let pairs = q.iter().zip(p);
    pairs.map(|(q, p)| (q - p / (1.0 - alpha)).max(0.0)).sum()
}

/// (p/β - q)_+.
fn residual(beta: f64, q: &[f64], p: &[f64]) -> Vec<f64> {
    let pairs = q.iter().zip(p);
    pairs.map(|(q, p)| (p / beta - q).max(0.0)).collect()
}

fn normalised(probs: &[f64]) -> Vec<f64> {
    let mass: f64 = probs.iter().sum();
    probs.iter().map(|value| value / mass).collect()
}

/// min(1, p/((1 - α) q)), 1 where q = 0.
fn kept(alpha: f64, q: f64, p: f64) -> f64 {
    if q > 0.0 {
        (p / ((1.0 - alpha) * q)).min(1.0)
    } else {
        1.0
    }
}

/// The tuned β by sorting the breakpoints q/p of Σ (λp - q)_+ and solving on each segment.
fn tuned_by_sorting(alpha: f64, q: &[f64], p: &[f64]) -> f64 {
    let refused = refused(alpha, q, p);
    let mut tokens: Vec<usize> = (0..q.len()).filter(|&v| p[v] > 0.0).collect();
    tokens.sort_by(|&a, &b| (q[a] / p[a]).total_cmp(&(q[b] / p[b])));
    let (mut below_q, mut below_p) = (0.0, 0.0);
    for (at, &v) in tokens.iter().enumerate() {
        below_q += q[v];
        below_p += p[v];
        let scale = (refused + below_q) / below_p;
        if tokens
            .get(at + 1)
            .is_none_or(|&next| scale <= q[next] / p[next])
        {
            return 1.0 / scale;
        }
    }
    unreachable!("the last segment has no end")
}

#[test]
fn tuned_beta_solves_its_equation() {
    let mut solved = 0;
    for (q, p) in distributions() {
        for alpha in ALPHAS {
            let beta = tuned_beta(&q, &p, alpha);
            assert!(beta >= 1.0, "{beta}");
            let refused = refused(alpha, &q, &p);
            if refused < 1e-14 {
                continue;
            }
            solved += 1;
            let residual: f64 = residual(beta, &q, &p).iter().sum();
            assert!((residual - refused).abs() < 1e-12, "{residual} {refused}");
            let (scale, sorted) = (1.0 / beta, 1.0 / tuned_by_sorting(alpha, &q, &p));
            assert!((scale - sorted).abs() < 1e-12, "{scale} {sorted}");
            // β = 1 iff nothing is lost, or what q says too often p never says.
            let loses = |v: usize| alpha > 0.0 && q[v] > p[v] && p[v] > 0.0;
            let loses_much = |v: usize| alpha > 0.0 && q[v] > p[v] + 1e-6 && p[v] > 1e-6;
            if beta > 1.0 + 1e-9 {
                assert!((0..q.len()).any(loses), "{beta} {q:?} {p:?}");
            } else {
                assert!(!(0..q.len()).any(loses_much), "{beta} {q:?} {p:?}");
            }
        }
    }
    assert!(solved > 3_000, "{solved}");
    assert_eq!(tuned_beta(&[0.5, 0.5], &[0.5, 0.5], 0.5), f64::INFINITY);
}

/// Breakpoints of all magnitudes, where the solution lies far from where the search starts.
#[test]
fn tuned_beta_is_found_among_steep_distributions() {
    for (q_step, p_step) in [(0.5, 0.9), (0.9, 0.3), (0.2, 0.8), (0.999, 0.5)] {
        let power = |step: f64| (0..200).map(|v| step.powi(v)).collect::<Vec<_>>();
        let (q, p) = (normalised(&power(q_step)), normalised(&power(p_step)));
        for alpha in [0.01, 0.5, 0.99] {
            let beta = tuned_beta(&q, &p, alpha);
            let sorted = tuned_by_sorting(alpha, &q, &p);
            assert!((1.0 / beta - 1.0 / sorted).abs() < 1e-12, "{beta} {sorted}");
        }
    }
}

#[test]
fn what_comes_out_is_what_the_procedure_emits() {
    for (q, p) in distributions() {
        for alpha in ALPHAS {
            for beta in [1.0 - alpha, 1.0 - alpha / 2.0, 1.0, 1.7, 40.0] {
                let out = emitted(alpha, Beta::Fixed(beta), &q, &p);
                let again = residual(beta, &q, &p);
                let replaces = again.iter().sum::<f64>() < 1e-14;
                let again = if replaces {
                    p.clone()
                } else {
                    normalised(&again)
                };
                let refused = refused(alpha, &q, &p);
                let probs = |v: usize| q[v] * kept(alpha, q[v], p[v]) + refused * again[v];
                let expected: Vec<f64> = (0..q.len()).map(probs).collect();
                assert_close(&out, &expected, "out");
                assert_close(&[out.iter().sum()], &[1.0], "mass");
            }
        }
    }
}

/// Token verification of `out` at a drafted position is lossy sampling itself (Lemma 2): the same
/// tokens accepted as often, and the same residual.
#[test]
fn token_verification_of_what_comes_out_is_lossy_sampling() {
    let mut refusals = 0;
    for (q, p) in distributions() {
        for alpha in ALPHAS {
            for beta in [Beta::Tuned, Beta::Fixed(1.0), Beta::Fixed(1.0 - alpha)] {
                let out = emitted(alpha, beta, &q, &p);
                for v in (0..q.len()).filter(|&v| q[v] > 1e-9) {
                    let ratio = (out[v] / q[v]).min(1.0);
                    let expected = kept(alpha, q[v], p[v]);
                    assert!((ratio - expected).abs() < 1e-9, "{ratio} {expected}");
                }
                let refused = refused(alpha, &q, &p);
                assert_close(&[1.0 - acceptance(&q, &out)], &[refused], "refused");
                if refused > 1e-3 {
                    refusals += 1;
                    let scale = match beta {
                        Beta::Fixed(beta) => beta,
                        Beta::Tuned => tuned_beta(&q, &p, alpha),
                    };
                    let excess = residual(1.0, &q, &out);
                    let expected = normalised(&residual(scale, &q, &p));
                    let normalised = normalised(&excess);
                    for (got, expected) in normalised.iter().zip(expected) {
                        assert!((got - expected).abs() < 1e-9);
                    }
                }
            }
        }
    }
    assert!(refusals > 3_000, "{refusals}");
}

/// Table 1 of the paper is the distribution that comes out iff β is tuned; at β = 1 its mass is
/// 1 + TV(p, q) - r.
#[test]
fn table_1_is_what_comes_out_where_beta_is_tuned() {
    let table = |alpha: f64, beta: f64, q: &[f64], p: &[f64]| -> Vec<f64> {
        let pairs = q.iter().zip(p);
        pairs
            .map(|(q, p)| q.min(p / (1.0 - alpha)).max(p / beta))
            .collect()
    };
    for (q, p) in distributions() {
        for alpha in ALPHAS {
            let tuned = table(alpha, tuned_beta(&q, &p, alpha), &q, &p);
            assert_close(&emitted(alpha, Beta::Tuned, &q, &p), &tuned, "tuned");
            let mass: f64 = table(alpha, 1.0, &q, &p).iter().sum();
            let expected = 1.0 + total_variation(&p, &q) - refused(alpha, &q, &p);
            assert_close(&[mass], &[expected], "mass at 1");
        }
    }
}

#[test]
fn without_loss_the_target_distribution_is_left_bit_for_bit() {
    for (q, p) in distributions() {
        assert_eq!(emitted(0.0, Beta::Fixed(1.0), &q, &p), p);
        assert_eq!(emitted(0.0, Beta::Tuned, &q, &p), p);
    }
}

#[test]
fn at_temperature_0_what_the_target_likes_nearly_as_well_as_its_first_choice_stands() {
    let one_hot = |probs: &[f64]| {
        let most = (0..probs.len())
            .rev()
            .max_by(|&a, &b| probs[a].total_cmp(&probs[b]));
        let most = most.expect("a token");
        let row = (0..probs.len()).map(|token| f64::from(u8::from(token == most)));
        (most, row.collect::<Vec<_>>())
    };
    let mut stood = [0; 2];
    for (q, p) in distributions() {
        let ((drafted, draft), (first, target)) = (one_hot(&q), one_hot(&p));
        for alpha in ALPHAS {
            for beta in [Beta::Fixed(1.0), Beta::Tuned] {
                let aim = TargetDistribution::Lossy { alpha, beta };
                let models = (Model::scaled(&draft, &q), Model::scaled(&target, &p));
                let (deferral, pi) = apply(aim, &models.0, &models.1, true);
                assert_eq!(deferral, None);
                let stands = alpha > 0.0 && p[drafted] >= p[first] * (1.0 - alpha);
                stood[usize::from(stands)] += 1;
                let expected = if stands { &draft } else { &target };
                assert_eq!(&pi, expected, "{alpha} {q:?} {p:?}");
            }
        }
    }
    assert!(stood.iter().all(|&count| count > 1_000), "{stood:?}");
}
