//! The deferral rules: the table of definitions, the lemmas, the ends of the range of α.

use speculation::confidence::Confidence;
use speculation::target::{RULES, Rule, TargetDistribution, rules};

use super::positions::{Position, positions};
use super::{acceptance, assert_close, total_variation};
use crate::model::{Model, apply};

fn deferral(rule: Rule, alpha: f64) -> TargetDistribution {
    TargetDistribution::Deferral { rule, alpha }
}

/// δ or η, and π.
fn decide(rule: Rule, alpha: f64, at: &Position) -> (f64, Vec<f64>) {
    let (deferral, pi) = apply(deferral(rule, alpha), &at.q, &at.p, at.greedy);
    (deferral.expect("a deferral"), pi)
}

/// Values of α over the rule's range, dense where models differ.
fn alphas(rule: Rule) -> Vec<f64> {
    let (least, most) = rule.alpha.range;
    let steps = (-12..=12).map(|step| f64::from(step) * 0.171);
    let inner = steps.filter(|alpha| (least..=most).contains(alpha));
    [least].into_iter().chain(inner).chain([most]).collect()
}

fn largest(probs: &[f64]) -> f64 {
    probs.iter().copied().fold(0.0, f64::max)
}

fn entropy(probs: &[f64]) -> f64 {
    let positive = probs.iter().filter(|&&mass| mass > 0.0);
    -positive.map(|mass| mass * mass.ln()).sum::<f64>()
}

/// By how much the rule's inequality for deferring at a position holds; not above 0: keep.
fn margin(rule: Rule, alpha: f64, at: &Position) -> f64 {
    let (q, p) = (at.q.unscaled(), at.p.unscaled());
    let tv = total_variation(&at.p.sampling, &at.q.sampling);
    let by_token = |v: usize| if q[v] > 0.0 { -q[v] * p[v].ln() } else { 0.0 };
    match rule.name {
        "chow" => 1.0 - alpha - largest(q),
        "chow-log" => entropy(q) - alpha,
        "diff" => largest(p) - alpha - largest(q),
        "diff-log" => entropy(q) - alpha - entropy(p),
        "opt" => largest(p) - alpha * tv - largest(q),
        "opt-log" => entropy(q) - alpha * tv - entropy(p),
        "bild" if at.greedy => {
            let taken = at.q.sampling.iter().position(|&mass| mass == 1.0);
            -p[taken.expect("a one-hot distribution")].ln() - alpha
        }
        "bild" => (0..q.len()).map(by_token).sum::<f64>() - alpha,
        other => unreachable!("{other} judges tokens"),
    }
}

/// By how much the rule's inequality for refusing token v holds.
fn token_margin(rule: Rule, alpha: f64, at: &Position, v: usize) -> f64 {
    let (q, p) = (at.q.unscaled(), at.p.unscaled());
    match rule.name {
        "token-v1" => largest(p) - alpha - q[v],
        "token-v2" => largest(p) - alpha - p[v],
        _ => largest(p) * (1.0 - alpha) - p[v],
    }
}

fn judging_positions() -> impl Iterator<Item = Rule> {
    RULES.iter().copied().filter(|rule| !rule.judges_tokens())
}

fn judging_tokens() -> impl Iterator<Item = Rule> {
    RULES.iter().copied().filter(Rule::judges_tokens)
}

/// And Lemma 3: a draft token is refused with probability δ TV(p, q).
#[test]
fn a_rule_that_judges_positions_gives_one_distribution_or_the_other() {
    let positions = positions();
    for rule in judging_positions() {
        let mut decided = [0, 0];
        for at in &positions {
            for alpha in alphas(rule) {
                let margin = margin(rule, alpha, at);
                if margin.abs() < 1e-12 {
                    continue;
                }
                let (delta, pi) = decide(rule, alpha, at);
                let defers = margin > 0.0;
                decided[usize::from(defers)] += 1;
                assert_eq!(
                    delta,
                    f64::from(u8::from(defers)),
                    "{rule:?} {alpha} {at:?}"
                );
                let expected = if defers {
                    &at.p.sampling
                } else {
                    &at.q.sampling
                };
                assert_eq!(&pi, expected, "{rule:?} {alpha}");
                let refused = 1.0 - acceptance(&at.q.sampling, &pi);
                let distance = total_variation(&at.p.sampling, &at.q.sampling);
                assert!(
                    (refused - delta * distance).abs() < 1e-12,
                    "{rule:?} {alpha}"
                );
            }
        }
        assert!(
            decided.iter().all(|&count| count > 500),
            "{rule:?} {decided:?}"
        );
    }
}

/// In single precision too, where distributions have a mass of nearly 1 only: at the ends of α the distribution is
/// one model's to the bit, and the deferral is 0 or 1.
#[test]
fn a_rule_that_refuses_all_or_nothing_leaves_a_distribution_as_it_is() {
    let probs = |seed: u32| -> Vec<f32> {
        let noise = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761) >> 12;
        let weights: Vec<f32> = (0..1000).map(|i| noise(i) as f32 + 1.0).collect();
        let mass: f32 = weights.iter().sum();
        weights.iter().map(|weight| weight / mass).collect()
    };
    let mut inexact = 0;
    for seed in 0..20 {
        let (q, p) = (probs(seed), probs(seed + 100));
        let mass: f64 = q.iter().map(|&each| f64::from(each)).sum();
        inexact += u32::from(mass as f32 != 1.0);
        for (rule, alpha, deferral, expected) in [
            (rules::TOKEN_V2, -1e-3, 1.0, &p),
            (rules::TOKEN_V3, -0.1, 1.0, &p),
            (rules::TOKEN_V1, 1.0, 0.0, &q),
            (rules::TOKEN_V2, 1.0, 0.0, &q),
            (rules::TOKEN_V3, 1.0, 0.0, &q),
        ] {
            let [draft, target] = [&q, &p].map(|probs| Model::scaled(probs, probs));
            let aim = TargetDistribution::Deferral { rule, alpha };
            let (found, pi) = apply(aim, &draft, &target, false);
            assert_eq!(found, Some(deferral), "{rule:?}");
            assert!(pi == *expected, "{rule:?}");
        }
    }
    assert!(inexact > 5, "{inexact}");
}

#[test]
fn a_rule_that_judges_tokens_replaces_the_refused_mass() {
    let positions = positions();
    for rule in judging_tokens() {
        let mut partial = 0;
        for at in &positions {
            for alpha in alphas(rule) {
                let tokens = 0..at.q.sampling.len();
                let margins: Vec<f64> = tokens
                    .clone()
                    .map(|v| token_margin(rule, alpha, at, v))
                    .collect();
                // Rounding may decide a tie either way; ties proper have a test of their own.
                if margins
                    .iter()
                    .any(|&margin| margin != 0.0 && margin.abs() < 1e-12)
                {
                    continue;
                }
                let (q, p) = (&at.q.sampling, &at.p.sampling);
                let refused = |v: &usize| margins[*v] > 0.0;
                let expected_eta: f64 = tokens.clone().filter(refused).map(|v| q[v]).sum();
                let (eta, pi) = decide(rule, alpha, at);
                assert_close(&[eta], &[expected_eta], rule.name);
                let probs = |v: usize| if refused(&v) { 0.0 } else { q[v] } + p[v] * expected_eta;
                let expected: Vec<f64> = tokens.map(probs).collect();
                assert_close(&pi, &expected, rule.name);
                assert_close(&[pi.iter().sum()], &[1.0], rule.name);
                partial += u32::from(eta > 0.01 && eta < 0.99);
            }
        }
        assert!(partial > 500, "{rule:?} {partial}");
    }
}

#[test]
fn a_larger_alpha_never_defers_more() {
    let positions = positions();
    for rule in RULES.iter().copied() {
        for at in &positions {
            let decided = alphas(rule)
                .into_iter()
                .map(|alpha| decide(rule, alpha, at).0);
            let decided: Vec<f64> = decided.collect();
            let falls = decided.windows(2).all(|pair| pair[1] <= pair[0] + 1e-15);
            assert!(falls, "{rule:?} {decided:?}");
        }
    }
}

/// Lemma 8: at temperature 0 the distance is 0 or 1, and where it is 0 both distributions are one.
#[test]
fn greedy_opt_emits_what_diff_emits() {
    for at in positions().iter().filter(|at| at.greedy) {
        for alpha in alphas(rules::DIFF) {
            let emitted = |rule| decide(rule, alpha, at).1;
            assert_eq!(emitted(rules::OPT), emitted(rules::DIFF));
            assert_eq!(emitted(rules::OPT_LOG), emitted(rules::DIFF_LOG));
        }
    }
}

#[test]
fn equal_models_give_their_distribution_where_positions_are_judged() {
    let positions = positions();
    let equal = positions.iter().filter(|at| at.equal);
    assert!(equal.clone().count() > 100);
    for at in equal {
        for rule in judging_positions() {
            for alpha in alphas(rule) {
                assert_eq!(decide(rule, alpha, at).1, at.q.sampling, "{rule:?}");
            }
        }
        // Where tokens are judged π is p at the ends only: what is refused is drawn anew.
        let (eta, pi) = decide(rules::TOKEN_V3, 0.2, at);
        let moved = total_variation(&pi, &at.p.sampling) > 1e-12;
        assert_eq!(moved, eta > 1e-12 && eta < 1.0 - 1e-12, "{eta} {at:?}");
    }
}

#[test]
fn in_a_tie_the_draft_model_speaks() {
    // Both models are half sure of another token; the numbers are exact in binary.
    let at = Position {
        q: Model::plain(&[0.5, 0.25, 0.25, 0.0]),
        p: Model::plain(&[0.25, 0.5, 0.0, 0.25]),
        greedy: false,
        equal: false,
    };
    for (rule, alpha) in [
        (rules::CHOW, 0.5),
        (rules::CHOW_LOG, at.q.confidence.entropy),
        (rules::DIFF, 0.0),
        (rules::DIFF_LOG, 0.0),
        (rules::OPT, 0.0),
        (rules::OPT_LOG, 0.0),
    ] {
        assert_eq!(decide(rule, alpha, &at).0, 0.0, "{rule:?}");
        assert_eq!(decide(rule, alpha - 1e-9, &at).0, 1.0, "{rule:?}");
    }
    // Tokens judged at exactly the bar of 1/4 are kept.
    for (rule, alpha, kept, beyond) in [
        (rules::TOKEN_V1, 0.25, 0.0, 0.5),
        (rules::TOKEN_V2, 0.25, 0.25, 0.75),
        (rules::TOKEN_V3, 0.5, 0.25, 0.75),
    ] {
        assert_eq!(decide(rule, alpha, &at).0, kept, "{rule:?}");
        assert_eq!(decide(rule, alpha - 1e-9, &at).0, beyond, "{rule:?}");
    }
    let greedy = Position {
        q: Model {
            sampling: vec![1.0, 0.0],
            ..Model::plain(&[0.75, 0.25])
        },
        p: Model {
            sampling: vec![1.0, 0.0],
            apart: Some(vec![0.5, 0.5]),
            confidence: Confidence::default(),
        },
        greedy: true,
        equal: false,
    };
    let ln_2 = std::f64::consts::LN_2;
    assert_eq!(decide(rules::BILD, ln_2, &greedy).0, 0.0);
    assert_eq!(decide(rules::BILD, ln_2 - 1e-9, &greedy).0, 1.0);
}

/// The rule token-v1 reads the unscaled draft probabilities of a sparse proposal's ids only.
#[test]
fn token_v1_reads_the_unscaled_draft_distribution_only_where_the_draft_distribution_has_mass() {
    for at in positions() {
        let reported = at.q.unscaled().iter().zip(&at.q.sampling);
        let reported = reported.map(|(&unscaled, &mass)| if mass > 0.0 { unscaled } else { 0.0 });
        let reported = Position {
            q: Model {
                apart: Some(reported.collect()),
                ..at.q.clone()
            },
            p: at.p.clone(),
            ..at
        };
        for alpha in alphas(rules::TOKEN_V1) {
            assert_eq!(
                decide(rules::TOKEN_V1, alpha, &reported),
                decide(rules::TOKEN_V1, alpha, &at)
            );
        }
    }
}
